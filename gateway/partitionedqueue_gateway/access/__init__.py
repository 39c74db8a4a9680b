"""Who may do what: policies, their keys, and what is made of them. It knows no wire and opens no socket."""
