package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	natsWait     = 30 * time.Second
	consumerName = "benchmark"
	pollPause    = time.Millisecond
)

// Nats speaks to NATS JetStream: work-queue streams in files, explicit acknowledgements.
type Nats struct {
	load    *Load
	streams []jetstream.JetStream // one a connection
}

func (n *Nats) stream(connection int) string {
	return fmt.Sprintf("%s-%d", n.load.RunName, connection%n.load.Queues)
}

// Connect opens the connections and makes streams and consumers.
func (n *Nats) Connect(load *Load) error {
	n.load = load
	for i := range load.Connections {
		connection, err := nats.Connect("nats://" + load.Addresses[i%len(load.Addresses)])
		if err != nil {
			return err
		}
		stream, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(load.Window))
		if err != nil {
			return err
		}
		n.streams = append(n.streams, stream)
	}
	ctx, cancel := context.WithTimeout(context.Background(), natsWait)
	defer cancel()
	for i := range load.Queues {
		name := n.stream(i)
		stream, err := n.streams[0].CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
		})
		if err != nil {
			return err
		}
		_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: load.Window * load.Connections,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close deletes the streams.
func (n *Nats) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), natsWait)
	defer cancel()
	for i := range n.load.Queues {
		_ = n.streams[0].DeleteStream(ctx, n.stream(i))
	}
	for _, stream := range n.streams {
		stream.Conn().Close()
	}
}

// Publish keeps a window of messages unconfirmed; the client waits where it is full.
func (n *Nats) Publish(connection, messages int) error {
	stream, subject := n.streams[connection], n.stream(connection)
	futures := make([]jetstream.PubAckFuture, 0, messages)
	for range messages {
		future, err := stream.PublishAsync(subject, n.load.Body, jetstream.WithStallWait(natsWait))
		if err != nil {
			return err
		}
		futures = append(futures, future)
	}
	<-stream.PublishAsyncComplete()
	for _, future := range futures {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		}
	}
	return nil
}

// Consume has the window as its pull, acknowledges each message, and waits until the server has taken all of that.
func (n *Nats) Consume(connection int, left *Countdown) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*natsWait)
	defer cancel()
	its, err := n.streams[connection].Consumer(ctx, n.stream(connection), consumerName)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	consuming, err := its.Consume(func(message jetstream.Msg) {
		if err := message.Ack(); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
		left.Take(1)
	}, jetstream.PullMaxMessages(n.load.Window))
	if err != nil {
		return err
	}
	defer consuming.Stop()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-left.WhenDone():
	}
	for {
		info, err := its.Info(ctx)
		if err != nil || (info.NumAckPending == 0 && info.NumPending == 0) {
			return err
		}
		time.Sleep(pollPause)
	}
}
