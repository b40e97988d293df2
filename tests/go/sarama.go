package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

// saramaRetries outlast a leader move; by default it gives up after three.
const saramaRetries = 100

func (o options) sarama() (*sarama.Config, []string) {
	config := sarama.NewConfig()
	config.ClientID = o["prop.client.id"]
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = saramaRetries
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	if o["prop.acks"] == "1" {
		config.Producer.RequiredAcks = sarama.WaitForLocal
	}
	if o["prop.enable.idempotence"] == "true" {
		config.Producer.Idempotent = true
		// It asks for this.
		config.Net.MaxOpenRequests = 1
	}
	config.Consumer.Return.Errors = true
	if rack, ok := o["prop.client.rack"]; ok {
		config.RackID = rack
	}
	return config, strings.Split(o["prop.bootstrap.servers"], ",")
}

// produceSarama sends records with sarama, and reports each outcome.
func produceSarama(until context.Context, id string, options options) error {
	config, brokers := options.sarama()
	client, err := sarama.NewAsyncProducer(brokers, config)
	if err != nil {
		return err
	}
	var reported sync.WaitGroup
	reported.Go(func() {
		for message := range client.Successes() {
			record := message.Metadata.(sent)
			record.offset = message.Offset
			record.report(id, "acked")
		}
	})
	reported.Go(func() {
		for failed := range client.Errors() {
			failed.Msg.Metadata.(sent).reportFailed(id, failed.Err)
		}
	})
	pacer := newPacer(id, options)
	report(id, "started", nil)
	pacer.begin()
	for pacer.wantsMore(until) {
		record := pacer.next()
		client.Input() <- &sarama.ProducerMessage{
			Topic:     options["topic"],
			Partition: record.partition,
			Value:     sarama.ByteEncoder(pacer.value(record)),
			Metadata:  record,
		}
	}
	client.AsyncClose()
	reported.Wait()
	return nil
}

// consumeSarama reads partitions with sarama, and reports all records.
func consumeSarama(until context.Context, id string, options options) error {
	config, brokers := options.sarama()
	client, err := sarama.NewClient(brokers, config)
	if err != nil {
		return err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	var reading sync.WaitGroup
	failed := make(chan error, 1)
	for _, partition := range options.partitions() {
		begin := sarama.OffsetOldest
		if options["from"] == "end" {
			// Looked up now: a record sent after "started" is read in any case.
			begin, err = client.GetOffset(options["topic"], partition, sarama.OffsetNewest)
			if err != nil {
				return err
			}
		}
		part, err := consumer.ConsumePartition(options["topic"], partition, begin)
		if err != nil {
			return err
		}
		reading.Go(func() { readSarama(until, id, part, failed) })
	}
	report(id, "started", nil)
	reading.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func readSarama(until context.Context, id string, part sarama.PartitionConsumer, failed chan<- error) {
	defer part.Close()
	for {
		select {
		case <-until.Done():
			return
		case err := <-part.Errors():
			// It goes on by itself.
			fmt.Fprintln(os.Stderr, id, err)
		case message := <-part.Messages():
			if err := reportRead(id, message.Partition, message.Offset, message.Value); err != nil {
				failed <- err
				return
			}
		}
	}
}
