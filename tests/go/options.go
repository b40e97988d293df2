package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// options are the fields name=value of a command; those named prop.X are client settings.
type options map[string]string

func parseOptions(texts []string) options {
	parsed := options{}
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		parsed[name] = value
	}
	return parsed
}

func (o options) number(name string) float64 {
	number, err := strconv.ParseFloat(o[name], 64)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return number
}

func (o options) partitions() []int32 {
	var partitions []int32
	for _, text := range strings.Split(o["partitions"], ",") {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			panic(err)
		}
		partitions = append(partitions, int32(number))
	}
	return partitions
}

var codecs = map[string]kgo.CompressionCodec{
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

// client makes a client of the settings, which have Kafka's own dotted names.
func (o options) client(more ...kgo.Opt) (*kgo.Client, error) {
	settings := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(o["prop.bootstrap.servers"], ",")...),
		kgo.ClientID(o["prop.client.id"]),
	}
	// Not one of Kafka's: it takes an end before the first answer for TLS that was not expected.
	if o["prop.retry.eof"] == "true" {
		settings = append(settings, kgo.AlwaysRetryEOF())
	}
	if text, told := o["prop.retry.backoff.ms"]; told {
		backOff, err := time.ParseDuration(text + "ms")
		if err != nil {
			return nil, err
		}
		settings = append(settings, kgo.RetryBackoffFn(func(int) time.Duration { return backOff }))
	}
	return kgo.NewClient(append(settings, more...)...)
}

// producing are the settings of a producer.
func (o options) producing() []kgo.Opt {
	settings := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}
	switch o["prop.acks"] {
	case "0":
		settings = append(settings, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		settings = append(settings, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if o["prop.enable.idempotence"] != "true" {
		settings = append(settings, kgo.DisableIdempotentWrite())
	}
	if id, ok := o["prop.transactional.id"]; ok {
		settings = append(settings, kgo.TransactionalID(id))
	}
	if codec, ok := codecs[o["prop.compression.type"]]; ok {
		settings = append(settings, kgo.ProducerBatchCompression(codec))
	}
	return settings
}

// consuming are the settings of a consumer; starts are where it begins if it is in no group.
func (o options) consuming(starts map[int32]kgo.Offset) []kgo.Opt {
	settings := []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if o["prop.isolation.level"] == "read_committed" {
		settings = append(settings, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if rack, ok := o["prop.client.rack"]; ok {
		settings = append(settings, kgo.Rack(rack))
	}
	// Not one of Kafka's either.
	if text, told := o["prop.recheck.preferred.replica.ms"]; told {
		every, err := time.ParseDuration(text + "ms")
		if err != nil {
			panic(err)
		}
		settings = append(settings, kgo.RecheckPreferredReplicaInterval(every))
	}
	if group, ok := o["prop.group.id"]; ok {
		return append(settings, kgo.ConsumerGroup(group), kgo.ConsumeTopics(o["topic"]))
	}
	return append(settings, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o["topic"]: starts}))
}
