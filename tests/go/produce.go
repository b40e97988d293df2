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

func (s sent) reportFailed(id string, err error) {
	report(id, "failed", fields{"partition": s.partition, "seq": s.seq, "error": err.Error()})
}

// pacer numbers records, for partitions in turn, and makes them at a steady rate.
type pacer struct {
	id      string
	options options
	numbers map[int32]int
	count   int
	began   time.Time
}

func newPacer(id string, options options) *pacer {
	return &pacer{id: id, options: options, numbers: map[int32]int{}}
}

// begin starts the rate.
func (p *pacer) begin() {
	p.began = time.Now()
}

func (p *pacer) wantsMore(until context.Context) bool {
	count := int(p.options.number("count"))
	return until.Err() == nil && (count == 0 || p.count < count)
}

// next waits until the next record is due.
func (p *pacer) next() sent {
	if rate := p.options.number("rate"); rate > 0 {
		due := p.began.Add(time.Duration(float64(p.count) * float64(time.Second) / rate))
		time.Sleep(time.Until(due))
	}
	partitions := p.options.partitions()
	partition := partitions[p.count%len(partitions)]
	record := sent{partition: partition, seq: p.numbers[partition], at: now(), offset: -1}
	p.count++
	p.numbers[partition]++
	return record
}

func (p *pacer) value(record sent) []byte {
	text := fmt.Sprintf("%s|%d|%d|%.6f|", p.id, record.partition, record.seq, record.at)
	padding := max(0, int(p.options.number("size"))-len(text))
	return []byte(text + strings.Repeat("x", padding))
}

// producer sends the records of a pacer with franz-go.
type producer struct {
	*pacer
	client *kgo.Client
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
	producer := &producer{pacer: newPacer(id, options), client: client}
	// The producer id and the topic's leaders are asked for with the first record.
	report(id, "started", nil)
	producer.begin()
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
		p.send(func(outcome sent) {
			if outcome.err != nil {
				outcome.reportFailed(p.id, outcome.err)
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

func (p *producer) send(done func(sent)) {
	record := p.next()
	p.client.Produce(context.Background(), &kgo.Record{
		Topic:     p.options["topic"],
		Partition: record.partition,
		Key:       fmt.Appendf(nil, "%s-%d", p.id, record.partition),
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
