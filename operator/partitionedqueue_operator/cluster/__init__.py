"""The one room that speaks to the API server and knows Kubernetes' client. It acts; others decide."""
