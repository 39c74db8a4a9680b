package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// As partitionedqueue.model.limits has them; a contract of the clients, not of the wire.
const (
	segmentMessages       = 256
	pushedBytesMin        = 4096
	sendMessagesMost      = 256
	sendsAfterAWrongGuess = 16
)

const (
	lockMs      = "60000"
	bufferBytes = 1 << 18
	emptyPause  = time.Millisecond
)

// Partitioned speaks RESP to one or more brokers of a partitioned queue, and calls what the library's clients call: bodies of
// some kilobytes go past Lua, fewer through it.
//
// Where Batch is 0 it joins messages as these clients do: one send at a time with all that waits for it, one receive at a time
// for all that there is room for; each message is completed by itself.
type Partitioned struct {
	load        *Load
	connections []*respConnection
}

type respConnection struct {
	net.Conn
	in    *bufio.Reader
	out   *bufio.Writer
	queue string
	tail  int64 // the last sequence number that is known of
	plain int   // sends that go through Lua, as others send to this queue, too
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
			Conn: conn, in: bufio.NewReaderSize(conn, bufferBytes), out: bufio.NewWriterSize(conn, bufferBytes),
			queue: fmt.Sprintf("pq:%s-%d", load.RunName, i%load.Queues),
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

func (p *Partitioned) joins() bool { return p.load.Batch == 0 }

// ---------------------------------------------------------------- publishing

type send struct {
	messages, replies int
	guess             int64 // the last sequence number before it
}

// Publish keeps a window of messages in flight; a send is confirmed by its reply.
func (p *Partitioned) Publish(connection, messages int) error {
	c := p.connections[connection]
	var sends []send
	underWay := 0
	for messages > 0 || underWay > 0 {
		for messages > 0 && (underWay == 0 || !p.joins() && underWay+p.load.Batch <= p.load.Window) {
			batch := p.load.Batch
			if p.joins() {
				batch = min(messages, p.load.Window, sendMessagesMost)
			}
			its := send{batch, 1, c.tail + int64(underWay)}
			c.plain = max(0, c.plain-1)
			if c.plain == 0 && batch*len(p.load.Body) >= pushedBytesMin && p.load.Pushes {
				its.replies = c.push(its.guess, batch, p.load.Body)
			} else {
				c.send(batch, p.load.Body)
			}
			sends = append(sends, its)
			messages, underWay = messages-batch, underWay+batch
		}
		sent := sends[0]
		sends = sends[1:]
		var reply value
		var err error
		for range sent.replies {
			if reply, err = c.reply(); err != nil {
				return err
			}
		}
		first := int64(0)
		if sent.replies > 1 {
			if text := reply.items[len(reply.items)-1].text; len(text) >= 8 {
				first = int64(binary.LittleEndian.Uint64(text))
			}
		} else if len(reply.items) > 0 {
			first = reply.items[0].number
		}
		if first < 1 {
			return errors.New("a send gave no sequence number")
		}
		if first > sent.guess+1 {
			c.plain = sendsAfterAWrongGuess
		}
		c.tail = max(c.tail, first+int64(sent.messages)-1)
		underWay -= sent.messages
	}
	return nil
}

func (c *respConnection) send(batch int, body []byte) {
	c.begin(7 + batch)
	c.words("FCALL", "pq_send", "1", c.queue, "", "0", "")
	for range batch {
		c.word(body)
	}
}

// push writes a transaction that stores a batch past Lua, behind what is thought to be the tail; how many replies it has.
func (c *respConnection) push(guess int64, batch int, body []byte) int {
	c.begin(1)
	c.words("MULTI")
	replies := 3
	for placed := 0; placed < batch; replies++ {
		segment, index := (guess+int64(placed))/segmentMessages, int(guess+int64(placed))%segmentMessages
		piece := min(batch-placed, segmentMessages-index)
		c.begin(2 + piece)
		c.words("RPUSH", c.segment(segment))
		for range piece {
			c.word(body)
		}
		placed += piece
	}
	var sizes []byte
	for range batch {
		sizes = binary.LittleEndian.AppendUint32(sizes, uint32(len(body)))
	}
	c.begin(6)
	c.words("FCALL", "pq_send_pushed", "1", c.queue, decimal(guess))
	c.word(sizes)
	c.begin(1)
	c.words("EXEC")
	return replies
}

func (c *respConnection) segment(segment int64) string { return c.queue + ":seg:" + decimal(segment) }

// ---------------------------------------------------------------- receiving

type asked int

const (
	aReceive asked = iota
	aFetch
	aComplete
)

// A consumer is one connection's part in receiving everything.
type consumer struct {
	*respConnection
	load     *Load
	left     *Countdown
	free     int // messages that may still be received; each takes its place until it is completed
	inFlight []expected
}

type expected struct {
	kind     asked
	messages int        // that are received at most, or settled
	held     [][3]int64 // lock, first and last, to be completed once their bodies are here
}

// Consume keeps a window of messages received and not completed.
func (p *Partitioned) Consume(connection int, left *Countdown) error {
	c := &consumer{respConnection: p.connections[connection], load: p.load, left: left, free: p.load.Window}
	for !left.Done() || len(c.inFlight) > 0 {
		c.ask()
		reply, err := c.reply()
		if err != nil {
			return err
		}
		its := c.inFlight[0]
		c.inFlight = c.inFlight[1:]
		switch its.kind {
		case aReceive:
			c.received(its, reply)
		case aFetch:
			if its.held != nil {
				c.complete(its.held)
			}
		case aComplete:
			if len(reply.items) > 0 {
				return errors.New("pq_complete refused messages")
			}
			c.free += its.messages
		}
	}
	return nil
}

func (c *consumer) past(messages int) bool {
	return messages*len(c.load.Body) >= pushedBytesMin && c.load.Pushes
}

// ask sends the receives that there is room for.
func (c *consumer) ask() {
	for !c.left.Done() {
		most := c.load.Batch
		if most == 0 { // one at a time, and not for a few
			if c.free < c.load.Window/2 || c.asks() {
				return
			}
			most = c.free
		} else if most > c.free && c.free < c.load.Window {
			return
		}
		words := []string{"FCALL", "pq_receive", "1", c.queue, strconv.Itoa(most), lockMs, "0", "", "0"}
		if c.past(most) {
			words = append(words, "places")
		}
		c.begin(len(words))
		c.words(words...)
		c.inFlight = append(c.inFlight, expected{kind: aReceive, messages: most})
		c.free -= most
	}
}

func (c *consumer) asks() bool {
	for _, each := range c.inFlight {
		if each.kind == aReceive {
			return true
		}
	}
	return false
}

// received has the bodies fetched, or completes what came with them.
func (c *consumer) received(its expected, reply value) {
	var held [][3]int64
	messages := 0
	hold := func(lock, first, count int64) {
		held = append(held, [3]int64{lock, first, first + count - 1})
		messages += int(count)
	}
	if c.past(its.messages) {
		for text := reply.text[3*8:]; len(text) > 0; { // lock, first; deliveries, messages, bytes of marks; marks
			lock, first := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
			hold(int64(lock), int64(first), int64(binary.LittleEndian.Uint32(text[20:])))
			text = text[28+binary.LittleEndian.Uint32(text[24:]):]
		}
	} else {
		for _, run := range reply.items[3:] {
			hold(run.items[0].number, run.items[1].number, int64(len(run.items[4].items)))
		}
	}
	c.free += its.messages - messages
	c.left.Take(messages)
	switch {
	case messages == 0: // others have the rest under their locks, or this call did only what was due
		time.Sleep(emptyPause)
	case c.past(its.messages):
		for i, run := range held {
			segment, index := (run[1]-1)/segmentMessages, (run[1]-1)%segmentMessages
			c.begin(4)
			c.words("LRANGE", c.segment(segment), decimal(index), decimal(index+run[2]-run[1]))
			fetch := expected{kind: aFetch}
			if i == len(held)-1 {
				fetch.held = held
			}
			c.inFlight = append(c.inFlight, fetch)
		}
	default:
		c.complete(held)
	}
}

// complete settles what was received together: in one call, or each message in its own.
func (c *consumer) complete(held [][3]int64) {
	if c.load.Batch > 0 {
		messages := 0
		c.begin(6 + 3*len(held))
		c.words("FCALL", "pq_complete", "1", c.queue, "", "0")
		for _, run := range held {
			c.words(decimal(run[0]), decimal(run[1]), decimal(run[2]))
			messages += int(run[2] - run[1] + 1)
		}
		c.inFlight = append(c.inFlight, expected{kind: aComplete, messages: messages})
		return
	}
	for _, run := range held {
		for sequence := run[1]; sequence <= run[2]; sequence++ {
			c.begin(9)
			c.words("FCALL", "pq_complete", "1", c.queue, "", "0", decimal(run[0]), decimal(sequence), decimal(sequence))
			c.inFlight = append(c.inFlight, expected{kind: aComplete, messages: 1})
		}
	}
}

// ---------------------------------------------------------------- RESP

type value struct {
	number int64
	text   []byte
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
	return c.read(textMost)
}

// What of a text is looked at: all of a reply that is one, and of what stands in a list the answer to a send; bodies are more.
const (
	textMost       = 1 << 20
	textInListMost = 1 << 6
)

// read takes one reply; of a text at most so much, the rest is passed over.
func (c *respConnection) read(most int64) (value, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return value{}, err
	}
	kind, text := line[0], string(line[1:len(line)-2])
	if kind == '-' {
		return value{}, errors.New(text)
	}
	if kind == '+' {
		return value{}, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return value{}, fmt.Errorf("a reply that was not foreseen: %q", line)
	}
	switch kind {
	case ':':
		return value{number: number}, nil
	case '$':
		if number < 0 {
			return value{}, nil
		}
		text := make([]byte, min(number, most))
		if _, err = io.ReadFull(c.in, text); err == nil {
			_, err = c.in.Discard(int(number) - len(text) + len("\r\n"))
		}
		return value{text: text}, err
	case '*':
		items := make([]value, max(number, 0))
		for i := range items {
			if items[i], err = c.read(textInListMost); err != nil {
				return value{}, err
			}
		}
		return value{items: items}, nil
	default:
		return value{}, fmt.Errorf("a reply that was not foreseen: %q", line)
	}
}
