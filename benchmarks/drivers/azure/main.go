// Command azure puts load on one queue through Microsoft's own Go SDK, unmodified, and prints as one JSON line how long
// it took.
//
// What it does is -mode: send (one message a call, -parallel calls at a time), batch (-batch messages a call), receive
// (peek-lock, -batch messages a call, each completed by itself) or delete (receive-and-delete, -batch messages a call).
// Every mode goes on until -messages have gone through.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Load is what is asked for on the command line.
type Load struct {
	Queue    string
	Messages int
	Batch    int
	Parallel int
	Body     []byte
}

// Result is what is printed.
type Result struct {
	Messages   int     `json:"messages"`
	Seconds    float64 `json:"seconds"`
	DriverCPUS float64 `json:"driver_cpu_s"`
}

const timeout = 5 * time.Minute

func main() {
	connection := flag.String("connection-string", "", "of the namespace")
	mode := flag.String("mode", "", "send, batch, receive or delete")
	size := flag.Int("size", 1024, "bytes of a body")
	load := &Load{}
	flag.StringVar(&load.Queue, "queue", "", "the queue")
	flag.IntVar(&load.Messages, "messages", 10_000, "messages in all")
	flag.IntVar(&load.Batch, "batch", 100, "messages in a call")
	flag.IntVar(&load.Parallel, "parallel", 64, "calls at a time, of send and of completions")
	flag.Parse()
	load.Body = make([]byte, *size)
	modes := map[string]func(context.Context, *azservicebus.Client, *Load) (int, error){
		"send": send, "batch": batch, "receive": receive, "delete": receiveAndDelete,
	}
	do, known := modes[*mode]
	if !known {
		fail(fmt.Errorf("no such mode: %q", *mode))
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := azservicebus.NewClientFromConnectionString(*connection, nil)
	fail(err)
	before, started := cpuSeconds(), time.Now()
	messages, err := do(ctx, client, load)
	fail(err)
	result := Result{messages, time.Since(started).Seconds(), cpuSeconds() - before}
	fail(client.Close(ctx))
	fail(json.NewEncoder(os.Stdout).Encode(result))
}

func send(ctx context.Context, client *azservicebus.Client, load *Load) (int, error) {
	sender, err := client.NewSender(load.Queue, nil)
	if err != nil {
		return 0, err
	}
	return load.Messages, inParallel(load.Parallel, load.Messages, func(i int) error {
		return sender.SendMessage(ctx, message(load, i), nil)
	})
}

func batch(ctx context.Context, client *azservicebus.Client, load *Load) (int, error) {
	sender, err := client.NewSender(load.Queue, nil)
	if err != nil {
		return 0, err
	}
	return load.Messages, inParallel(min(load.Parallel, 4), load.Messages/load.Batch, func(i int) error {
		together, err := sender.NewMessageBatch(ctx, nil)
		if err != nil {
			return err
		}
		for n := range load.Batch {
			if err := together.AddMessage(message(load, i*load.Batch+n), nil); err != nil {
				return err
			}
		}
		return sender.SendMessageBatch(ctx, together, nil)
	})
}

func receive(ctx context.Context, client *azservicebus.Client, load *Load) (int, error) {
	receiver, err := client.NewReceiverForQueue(load.Queue, nil)
	if err != nil {
		return 0, err
	}
	return receiveAll(ctx, receiver, load, func(messages []*azservicebus.ReceivedMessage) error {
		return inParallel(len(messages), len(messages), func(i int) error {
			return receiver.CompleteMessage(ctx, messages[i], nil)
		})
	})
}

func receiveAndDelete(ctx context.Context, client *azservicebus.Client, load *Load) (int, error) {
	options := &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	receiver, err := client.NewReceiverForQueue(load.Queue, options)
	if err != nil {
		return 0, err
	}
	return receiveAll(ctx, receiver, load, func([]*azservicebus.ReceivedMessage) error { return nil })
}

func receiveAll(
	ctx context.Context, receiver *azservicebus.Receiver, load *Load,
	settle func([]*azservicebus.ReceivedMessage) error,
) (int, error) {
	got := 0
	for got < load.Messages {
		messages, err := receiver.ReceiveMessages(ctx, min(load.Batch, load.Messages-got), nil)
		if err != nil {
			return got, err
		}
		if err := settle(messages); err != nil {
			return got, err
		}
		got += len(messages)
	}
	return got, nil
}

func message(load *Load, number int) *azservicebus.Message {
	id := strconv.Itoa(number)
	return &azservicebus.Message{Body: load.Body, MessageID: &id}
}

// inParallel does something `times` times, at most `parallel` at once, and gives the first error.
func inParallel(parallel, times int, do func(number int) error) error {
	numbers := make(chan int)
	errs := make(chan error, parallel)
	var all sync.WaitGroup
	for range parallel {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range numbers {
				if err := do(i); err != nil {
					errs <- err
					for range numbers { // the others' share
					}
					return
				}
			}
		}()
	}
	for i := range times {
		numbers <- i
	}
	close(numbers)
	all.Wait()
	close(errs)
	return <-errs
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
