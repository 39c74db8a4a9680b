// Command drivers puts the same load on one of three message brokers: it publishes messages and waits for each to be
// confirmed, then receives and acknowledges all of them, and prints as one JSON line how long both took.
//
// Whatever the broker, each connection has at most -window messages in flight: published and not confirmed, or delivered
// and not acknowledged. -batch is how many messages one call carries where the protocol can (partitionedqueue), and how
// many one acknowledgement covers (RabbitMQ: multiple; NATS work queues acknowledge singly).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Load is what is asked for on the command line.
type Load struct {
	Addresses   []string // of the broker, or of all of them; connection i takes address i modulo their number
	Connections int
	Queues      int // connection i takes queue i modulo their number
	Messages    int // in all; a whole number of batches for each connection
	Batch       int
	Window      int
	Pushes      bool // whether partitionedqueue's larger batches go past Lua
	Body        []byte
	RunName     string // names the queues, so that nothing of an earlier run is in the way
}

// A Peer is one kind of broker. Publish and consume are called once for each connection, all at the same time.
type Peer interface {
	// Connect opens all connections and makes the queues, unmeasured.
	Connect(load *Load) error
	// Publish returns once `messages` are confirmed.
	Publish(connection, messages int) error
	// Consume returns once no message of its queue is left and the broker has taken all its acknowledgements.
	Consume(connection int, left *Countdown) error
	// Close removes the queues.
	Close()
}

// A Countdown is how many messages of one queue are still to be received, by all its connections together.
type Countdown struct {
	left atomic.Int64
	done chan struct{}
}

// Take counts off what was received.
func (c *Countdown) Take(messages int) {
	if messages > 0 && c.left.Add(-int64(messages)) == 0 {
		close(c.done)
	}
}

// WhenDone is closed once everything was received.
func (c *Countdown) WhenDone() <-chan struct{} { return c.done }

// Done tells whether everything was received.
func (c *Countdown) Done() bool { return c.left.Load() <= 0 }

// Result is what is printed.
type Result struct {
	Messages   int     `json:"messages"`
	PublishS   float64 `json:"publish_s"`
	ConsumeS   float64 `json:"consume_s"`
	DriverCPUS float64 `json:"driver_cpu_s"`
}

func main() {
	peers := map[string]Peer{"partitionedqueue": &Partitioned{}, "rabbitmq": &Rabbit{}, "nats": &Nats{}}
	kind := flag.String("kind", "", "partitionedqueue, rabbitmq or nats")
	addresses := flag.String("addresses", "", "host:port, separated by commas")
	bodyFile := flag.String("body", "", "a file with the bytes of one message as this broker takes it")
	load := &Load{}
	flag.IntVar(&load.Connections, "connections", 1, "connections")
	flag.IntVar(&load.Queues, "queues", 1, "queues")
	flag.IntVar(&load.Messages, "messages", 10_000, "messages")
	flag.IntVar(&load.Batch, "batch", 1, "messages in a call or under one acknowledgement; 0: as partitionedqueue's clients join them")
	flag.BoolVar(&load.Pushes, "pushes", true, "whether partitionedqueue's larger batches go past Lua")
	flag.IntVar(&load.Window, "window", 256, "messages in flight on each connection")
	flag.StringVar(&load.RunName, "run", "run", "a name for this run")
	flag.Parse()
	load.Addresses = strings.Split(*addresses, ",")
	peer, known := peers[*kind]
	if !known {
		fail(fmt.Errorf("no such kind: %q", *kind))
	}
	body, err := os.ReadFile(*bodyFile)
	fail(err)
	load.Body = body
	fail(peer.Connect(load))
	defer peer.Close()
	result, err := run(peer, load)
	fail(err)
	fail(json.NewEncoder(os.Stdout).Encode(result))
}

func run(peer Peer, load *Load) (*Result, error) {
	batch := max(1, load.Batch)
	each := load.Messages / load.Connections / batch * batch
	result := &Result{Messages: each * load.Connections}
	left := make([]Countdown, load.Queues)
	for i := range left {
		left[i].done = make(chan struct{})
	}
	for i := range load.Connections {
		left[i%load.Queues].left.Add(int64(each))
	}
	before := cpuSeconds()
	var err error
	result.PublishS, err = together(load.Connections, func(i int) error { return peer.Publish(i, each) })
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	result.ConsumeS, err = together(load.Connections, func(i int) error { return peer.Consume(i, &left[i%load.Queues]) })
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	result.DriverCPUS = cpuSeconds() - before
	for i := range left {
		if still := left[i].left.Load(); still != 0 {
			return nil, fmt.Errorf("%d messages more, or less, came than were sent", -still)
		}
	}
	return result, nil
}

// together runs something on every connection and gives the seconds until the last is done.
func together(connections int, do func(connection int) error) (float64, error) {
	errs := make([]error, connections)
	var all sync.WaitGroup
	started := time.Now()
	for i := range connections {
		all.Add(1)
		go func() {
			defer all.Done()
			errs[i] = do(i)
		}()
	}
	all.Wait()
	took := time.Since(started).Seconds()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
