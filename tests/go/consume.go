package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const askEvery = 20 * time.Millisecond

// consume reads a topic, as a member of a group if prop.group.id is given, and reports all.
func consume(until context.Context, id string, options options) error {
	started := func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
		if len(assigned) > 0 {
			report(id, "started", nil)
		}
	}
	starts, err := findStarts(until, options)
	if err != nil {
		return err
	}
	settings := options.consuming(starts)
	_, grouped := options["prop.group.id"]
	if grouped {
		settings = append(settings, kgo.OnPartitionsAssigned(started))
	}
	client, err := options.client(settings...)
	if err != nil {
		return err
	}
	defer client.Close()
	if !grouped {
		report(id, "started", nil)
	}
	for until.Err() == nil {
		fetches := client.PollFetches(until)
		fetches.EachError(func(topic string, partition int32, err error) {
			// franz-go goes on by itself after every error that it tells here.
			if !errors.Is(err, context.Canceled) {
				fmt.Fprintln(os.Stderr, id, topic, partition, err)
			}
		})
		var bad error
		fetches.EachRecord(func(record *kgo.Record) {
			bad = errors.Join(bad, reportRead(id, record.Partition, record.Offset, record.Value))
		})
		if bad != nil {
			return bad
		}
	}
	return nil
}

// findStarts looks up where to begin, so that a record sent after that is read in any case.
func findStarts(until context.Context, options options) (map[int32]kgo.Offset, error) {
	starts := map[int32]kgo.Offset{}
	for _, partition := range options.partitions() {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	if options["from"] != "end" {
		return starts, nil
	}
	client, err := options.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(until, options["topic"])
	if err != nil {
		return nil, err
	}
	for partition := range starts {
		end, ok := ends.Lookup(options["topic"], partition)
		if !ok || end.Err != nil {
			return nil, fmt.Errorf("no end of %d: %w", partition, end.Err)
		}
		starts[partition] = kgo.NewOffset().At(end.Offset)
	}
	return starts, nil
}

// reportRead reports a record that was consumed.
func reportRead(id string, partition int32, offset int64, value []byte) error {
	texts := strings.Split(string(value), "|")
	seq, badSeq := strconv.Atoi(texts[2])
	at, badTime := strconv.ParseFloat(texts[3], 64)
	report(id, "consumed", fields{
		"partition": partition, "offset": offset, "producer": texts[0],
		"seq": seq, "at": now(), "latency_ms": sinceMs(at),
	})
	return errors.Join(badSeq, badTime)
}

// askOffsets asks again and again where partitions end.
func askOffsets(until context.Context, id string, options options) error {
	client, err := options.client()
	if err != nil {
		return err
	}
	defer client.Close()
	report(id, "started", nil)
	for until.Err() == nil {
		ends, err := kadm.NewClient(client).ListEndOffsets(context.Background(), options["topic"])
		if err != nil {
			return err
		}
		ends.Each(func(end kadm.ListedOffset) {
			if end.Err != nil {
				// It leaves it to its callers to ask again.
				fmt.Fprintln(os.Stderr, id, "no offset:", end.Err)
				return
			}
			report(id, "end", fields{"partition": end.Partition, "offset": end.Offset})
		})
		time.Sleep(askEvery)
	}
	return nil
}
