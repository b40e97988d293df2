package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// kafkaGoAttempts outlast a leader move; by default it gives up after ten.
const kafkaGoAttempts = 100

// produceKafkaGo sends records with segmentio's kafka-go, and reports each outcome.
func produceKafkaGo(until context.Context, id string, options options) error {
	acks := kafka.RequireAll
	if options["prop.acks"] == "1" {
		acks = kafka.RequireOne
	}
	transport := &kafka.Transport{ClientID: options["prop.client.id"]}
	if age := options["prop.metadata.max.age.ms"]; age != "" {
		lasts, err := time.ParseDuration(age + "ms")
		if err != nil {
			return err
		}
		transport.MetadataTTL = lasts
	}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(strings.Split(options["prop.bootstrap.servers"], ",")...),
		Topic:        options["topic"],
		Balancer:     kafka.BalancerFunc(partitionOfKey),
		RequiredAcks: acks,
		MaxAttempts:  kafkaGoAttempts,
		// By default it gathers records for a second.
		BatchTimeout: time.Millisecond,
		Async:        true,
		Transport:    transport,
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				record := message.WriterData.(sent)
				record.offset = message.Offset
				if err != nil {
					record.reportFailed(id, err)
				} else {
					record.report(id, "acked")
				}
			}
		},
	}
	pacer := newPacer(id, options)
	report(id, "started", nil)
	pacer.begin()
	for pacer.wantsMore(until) {
		record := pacer.next()
		message := kafka.Message{
			Key:        []byte(strconv.Itoa(int(record.partition))),
			Value:      pacer.value(record),
			WriterData: record,
		}
		if err := writer.WriteMessages(context.Background(), message); err != nil {
			return err
		}
	}
	return writer.Close()
}

func partitionOfKey(message kafka.Message, _ ...int) int {
	partition, err := strconv.Atoi(string(message.Key))
	if err != nil {
		panic(err)
	}
	return partition
}

// consumeKafkaGo reads partitions with segmentio's kafka-go, and reports all records.
func consumeKafkaGo(until context.Context, id string, options options) error {
	brokers := strings.Split(options["prop.bootstrap.servers"], ",")
	dialer := &kafka.Dialer{ClientID: options["prop.client.id"], Timeout: 10 * time.Second}
	var reading sync.WaitGroup
	failed := make(chan error, len(options.partitions()))
	for _, partition := range options.partitions() {
		begin := kafka.FirstOffset
		if options["from"] == "end" {
			end, err := lastOffset(until, dialer, brokers[0], options["topic"], int(partition))
			if err != nil {
				return err
			}
			begin = end
		}
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers:   brokers,
			Topic:     options["topic"],
			Partition: int(partition),
			Dialer:    dialer,
			MaxWait:   500 * time.Millisecond,
			ErrorLogger: kafka.LoggerFunc(func(text string, values ...any) {
				fmt.Fprintf(os.Stderr, id+" "+text+"\n", values...)
			}),
		})
		if err := reader.SetOffset(begin); err != nil {
			return err
		}
		reading.Go(func() { readKafkaGo(until, id, reader, failed) })
	}
	report(id, "started", nil)
	reading.Wait()
	close(failed)
	return <-failed
}

// lastOffset looks up where a partition ends, so that a record sent after that is read.
func lastOffset(until context.Context, dialer *kafka.Dialer, broker, topic string, partition int) (int64, error) {
	leader, err := dialer.DialLeader(until, "tcp", broker, topic, partition)
	if err != nil {
		return 0, err
	}
	defer leader.Close()
	return leader.ReadLastOffset()
}

func readKafkaGo(until context.Context, id string, reader *kafka.Reader, failed chan<- error) {
	defer reader.Close()
	for {
		message, err := reader.ReadMessage(until)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err == nil {
			err = reportRead(id, int32(message.Partition), message.Offset, message.Value)
		}
		if err != nil {
			failed <- err
			return
		}
	}
}
