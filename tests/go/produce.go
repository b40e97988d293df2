package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const abortEvery = 3

// sent is a record and, once it is known, its outcome.
type sent struct {
	partition int32
	seq       int
	at        float64
	offset    int64
	err       error
}

func (s sent) report(id, event string) {
	report(id, event, fields{
		"partition": s.partition, "seq": s.seq, "offset": s.offset,
		"at": now(), "latency_ms": sinceMs(s.at),
	})
}

// producer sends numbered records to partitions in turn at a steady rate.
type producer struct {
	id      string
	client  *kgo.Client
	options options
	next    map[int32]int
	count   int
	began   time.Time
}

// produce sends records and reports each outcome.
//
// With transaction=N every N records are a transaction, and every third one is aborted; records
// of a transaction are reported only once it is committed or aborted.
func produce(until context.Context, id string, options options) error {
	client, err := options.client(options.producing()...)
	if err != nil {
		return err
	}
	defer client.Close()
	producer := &producer{id: id, client: client, options: options, next: map[int32]int{}}
	// The producer id and the topic's leaders are asked for with the first record.
	report(id, "started", nil)
	producer.began = time.Now()
	if length := int(options.number("transaction")); length > 0 {
		err = producer.sendTransactions(until, length)
	} else {
		producer.sendRecords(until)
	}
	if err != nil {
		return err
	}
	return client.Flush(context.Background())
}

func (p *producer) sendRecords(until context.Context) {
	for p.wantsMore(until) {
		p.pace()
		p.send(func(outcome sent) {
			if outcome.err != nil {
				report(p.id, "failed", fields{
					"partition": outcome.partition, "seq": outcome.seq, "error": outcome.err.Error(),
				})
				return
			}
			outcome.report(p.id, "acked")
		})
	}
}

func (p *producer) sendTransactions(until context.Context, length int) error {
	for number := 1; p.wantsMore(until); number++ {
		if err := p.sendTransaction(length, number%abortEvery != 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *producer) sendTransaction(length int, commits bool) error {
	if err := p.client.BeginTransaction(); err != nil {
		return err
	}
	var lock sync.Mutex
	var outcomes []sent
	for range length {
		p.pace()
		p.send(func(outcome sent) {
			lock.Lock()
			defer lock.Unlock()
			outcomes = append(outcomes, outcome)
		})
	}
	if err := p.client.Flush(context.Background()); err != nil {
		return err
	}
	for _, outcome := range outcomes {
		if outcome.err != nil {
			fmt.Fprintln(os.Stderr, "transaction aborted:", outcome.err)
			commits = false
		}
	}
	event := "aborted"
	if commits {
		event = "acked"
	}
	if err := p.client.EndTransaction(context.Background(), kgo.TransactionEndTry(commits)); err != nil {
		return err
	}
	for _, outcome := range outcomes {
		outcome.report(p.id, event)
	}
	return nil
}

func (p *producer) wantsMore(until context.Context) bool {
	count := int(p.options.number("count"))
	return until.Err() == nil && (count == 0 || p.count < count)
}

func (p *producer) pace() {
	if rate := p.options.number("rate"); rate > 0 {
		due := p.began.Add(time.Duration(float64(p.count) * float64(time.Second) / rate))
		time.Sleep(time.Until(due))
	}
}

func (p *producer) send(done func(sent)) {
	partitions := p.options.partitions()
	partition := partitions[p.count%len(partitions)]
	record := sent{partition: partition, seq: p.next[partition], at: now(), offset: -1}
	p.count++
	p.next[partition]++
	p.client.Produce(context.Background(), &kgo.Record{
		Topic:     p.options["topic"],
		Partition: partition,
		Key:       fmt.Appendf(nil, "%s-%d", p.id, partition),
		Value:     p.value(record),
	}, func(produced *kgo.Record, err error) {
		record.err = err
		// With acks=0 no broker says an offset.
		if err == nil && p.options["prop.acks"] != "0" {
			record.offset = produced.Offset
		}
		done(record)
	})
}

func (p *producer) value(record sent) []byte {
	text := fmt.Sprintf("%s|%d|%d|%.6f|", p.id, record.partition, record.seq, record.at)
	padding := max(0, int(p.options.number("size"))-len(text))
	return []byte(text + strings.Repeat("x", padding))
}
