package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// read reads AMOUNT bytes from the start of a topic's PARTITIONS with franz-go's own settings, and
// says in one line of JSON what it took.
func read(arguments []string) error {
	bootstrap, topic := arguments[0], arguments[1]
	amount, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	partitions, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	starts := map[int32]kgo.Offset{}
	for partition := range partitions {
		starts[int32(partition)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	began := time.Now()
	for left := amount; left > 0; {
		fetches := client.PollFetches(context.Background())
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) { left -= len(record.Value) })
	}
	seconds := time.Since(began).Seconds()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	cpu := float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	fmt.Printf("{\"seconds\": %.3f, \"cpu_seconds\": %.3f}\n", seconds, cpu)
	return nil
}
