package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Rabbit speaks AMQP 0-9-1 to RabbitMQ: publisher confirms, quorum queues, persistent messages.
type Rabbit struct {
	load        *Load
	connections []*amqp.Connection
}

func (r *Rabbit) queue(connection int) string {
	return fmt.Sprintf("%s-%d", r.load.RunName, connection%r.load.Queues)
}

// Connect opens the connections and declares the queues.
func (r *Rabbit) Connect(load *Load) error {
	r.load = load
	for i := range load.Connections {
		connection, err := amqp.Dial("amqp://guest:guest@" + load.Addresses[i%len(load.Addresses)] + "/")
		if err != nil {
			return err
		}
		r.connections = append(r.connections, connection)
	}
	channel, err := r.connections[0].Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	for i := range load.Queues {
		quorum := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
		if _, err := channel.QueueDeclare(r.queue(i), true, false, false, false, quorum); err != nil {
			return err
		}
	}
	return nil
}

// Close deletes the queues.
func (r *Rabbit) Close() {
	if channel, err := r.connections[0].Channel(); err == nil {
		for i := range r.load.Queues {
			_, _ = channel.QueueDelete(r.queue(i), false, false, false)
		}
	}
	for _, connection := range r.connections {
		connection.Close()
	}
}

// Publish keeps a window of messages unconfirmed.
func (r *Rabbit) Publish(connection, messages int) error {
	channel, err := r.connections[connection].Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	if err := channel.Confirm(false); err != nil {
		return err
	}
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, r.load.Window))
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: r.load.Body}
	for unsent, unconfirmed := messages, 0; unsent > 0 || unconfirmed > 0; unconfirmed-- {
		for ; unsent > 0 && unconfirmed < r.load.Window; unsent, unconfirmed = unsent-1, unconfirmed+1 {
			err := channel.PublishWithContext(context.Background(), "", r.queue(connection), false, false, message)
			if err != nil {
				return err
			}
		}
		if confirm, open := <-confirms; !open || !confirm.Ack {
			return errors.New("RabbitMQ did not confirm a message")
		}
	}
	return nil
}

// Consume has the window as its prefetch count and acknowledges a batch at a time.
func (r *Rabbit) Consume(connection int, left *Countdown) error {
	channel, err := r.connections[connection].Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	if err := channel.Qos(r.load.Window, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.Consume(r.queue(connection), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	received := 0
	var last amqp.Delivery
	for !left.Done() {
		select {
		case delivery, open := <-deliveries:
			if !open {
				return errors.New("RabbitMQ closed a channel")
			}
			left.Take(1)
			last = delivery
			if received++; received%r.load.Batch == 0 {
				if err := last.Ack(r.load.Batch > 1); err != nil {
					return err
				}
			}
		case <-left.WhenDone():
		}
	}
	if received%r.load.Batch > 0 {
		if err := last.Ack(true); err != nil {
			return err
		}
	}
	// Acknowledgements have no reply; what is asked after them on the same channel has.
	_, err = channel.QueueDeclarePassive(r.queue(connection), true, false, false, false, nil)
	return err
}
