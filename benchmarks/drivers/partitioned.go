package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const (
	lockMs      = "60000"
	bufferBytes = 1 << 18
	emptyPause  = time.Millisecond
)

// Partitioned speaks RESP to one or more brokers of a partitioned queue: pq_send, pq_receive and pq_complete.
type Partitioned struct {
	load        *Load
	connections []*respConnection
}

type respConnection struct {
	net.Conn
	in  *bufio.Reader
	out *bufio.Writer
	key string
}

// Connect opens the connections; a queue needs no making.
func (p *Partitioned) Connect(load *Load) error {
	p.load = load
	for i := range load.Connections {
		conn, err := net.Dial("tcp", load.Addresses[i%len(load.Addresses)])
		if err != nil {
			return err
		}
		p.connections = append(p.connections, &respConnection{
			conn, bufio.NewReaderSize(conn, bufferBytes), bufio.NewWriterSize(conn, bufferBytes),
			fmt.Sprintf("pq:%s-%d", load.RunName, i%load.Queues),
		})
	}
	return nil
}

// Close closes the connections; the servers and all they hold end with the benchmark.
func (p *Partitioned) Close() {
	for _, connection := range p.connections {
		connection.Close()
	}
}

func (p *Partitioned) calls() int { return max(1, p.load.Window/p.load.Batch) }

// Publish keeps a window of sends in flight; a send is confirmed by its reply.
func (p *Partitioned) Publish(connection, messages int) error {
	c := p.connections[connection]
	for unsent, unconfirmed := messages/p.load.Batch, 0; unsent > 0 || unconfirmed > 0; unconfirmed-- {
		for ; unsent > 0 && unconfirmed < p.calls(); unsent, unconfirmed = unsent-1, unconfirmed+1 {
			c.begin(7 + p.load.Batch)
			c.words("FCALL", "pq_send", "1", c.key, "", "0", "")
			for range p.load.Batch {
				c.word(p.load.Body)
			}
		}
		reply, err := c.reply()
		if err != nil {
			return err
		}
		if len(reply.items) < 2 || reply.items[0].number < 1 {
			return errors.New("pq_send gave no sequence number")
		}
	}
	return nil
}

// Consume keeps a window of receives, and of the completes that follow them, in flight.
func (p *Partitioned) Consume(connection int, left *Countdown) error {
	c := p.connections[connection]
	most := strconv.Itoa(p.load.Batch)
	var inFlight []bool // in order; whether it is a receive
	free := p.calls()   // receives that may still be sent; what is received takes its place until it is completed
	for !left.Done() || len(inFlight) > 0 {
		for ; free > 0 && !left.Done(); free-- {
			c.begin(9)
			c.words("FCALL", "pq_receive", "1", c.key, most, lockMs, "0", "", "0")
			inFlight = append(inFlight, true)
		}
		reply, err := c.reply()
		if err != nil {
			return err
		}
		isReceive := inFlight[0]
		inFlight = inFlight[1:]
		switch {
		case !isReceive && len(reply.items) > 0:
			return errors.New("pq_complete refused messages")
		case !isReceive:
			free++
		case len(reply.items) == 3: // others have the rest under their locks, or this call did only what was due
			free++
			time.Sleep(emptyPause)
		default:
			c.complete(reply.items[3:], left)
			inFlight = append(inFlight, false)
		}
	}
	return nil
}

func (c *respConnection) complete(runs []value, left *Countdown) {
	c.begin(6 + 3*len(runs))
	c.words("FCALL", "pq_complete", "1", c.key, "", "0")
	for _, run := range runs {
		lock, first, messages := run.items[0].number, run.items[1].number, len(run.items[4].items)
		c.words(decimal(lock), decimal(first), decimal(first+int64(messages)-1))
		left.Take(messages)
	}
}

// ---------------------------------------------------------------- RESP

type value struct {
	number int64
	items  []value
}

func decimal(number int64) string { return strconv.FormatInt(number, 10) }

func (c *respConnection) begin(words int) {
	c.out.WriteByte('*')
	c.out.WriteString(strconv.Itoa(words))
	c.out.WriteString("\r\n")
}

func (c *respConnection) words(words ...string) {
	for _, word := range words {
		c.out.WriteByte('$')
		c.out.WriteString(strconv.Itoa(len(word)))
		c.out.WriteString("\r\n")
		c.out.WriteString(word)
		c.out.WriteString("\r\n")
	}
}

func (c *respConnection) word(word []byte) {
	c.out.WriteByte('$')
	c.out.WriteString(strconv.Itoa(len(word)))
	c.out.WriteString("\r\n")
	c.out.Write(word)
	c.out.WriteString("\r\n")
}

// reply takes the next one; before it waits for it, everything is sent.
func (c *respConnection) reply() (value, error) {
	if c.in.Buffered() == 0 {
		if err := c.out.Flush(); err != nil {
			return value{}, err
		}
	}
	return c.read()
}

// read takes one reply; texts are passed over.
func (c *respConnection) read() (value, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return value{}, err
	}
	kind, text := line[0], string(line[1:len(line)-2])
	if kind == '-' {
		return value{}, errors.New(text)
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return value{}, fmt.Errorf("a reply that was not foreseen: %q", line)
	}
	switch kind {
	case ':':
		return value{number: number}, nil
	case '$':
		if number >= 0 {
			_, err = c.in.Discard(int(number) + len("\r\n"))
		}
		return value{}, err
	case '*':
		items := make([]value, max(number, 0))
		for i := range items {
			if items[i], err = c.read(); err != nil {
				return value{}, err
			}
		}
		return value{items: items}, nil
	default:
		return value{}, fmt.Errorf("a reply that was not foreseen: %q", line)
	}
}
