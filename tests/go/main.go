// Producers and consumers of a Go library in one process, driven by lines on standard input.
//
// The library is the program's argument: franz-go, sarama or kafka-go.
//
// A line is "produce ID name=value...", the same with "consume", "offsets" and "administer", or
// "stop ID", with tabs between the fields. The process ends when its input does.
//
// With the arguments "read" BOOTSTRAP TOPIC AMOUNT PARTITIONS it does what its file says instead.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
)

func main() {
	if os.Args[1] == "read" {
		if err := read(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	stops := map[string]context.CancelFunc{}
	commands := bufio.NewScanner(os.Stdin)
	commands.Buffer(nil, 1<<20)
	for commands.Scan() {
		fields := strings.Split(commands.Text(), "\t")
		verb, id := fields[0], fields[1]
		if verb == "stop" {
			stops[id]()
			continue
		}
		until, stop := context.WithCancel(context.Background())
		stops[id] = stop
		go run(until, verb, id, parseOptions(fields[2:]))
	}
}

// libraries has what each library does upon a command.
var libraries = map[string]map[string]func(context.Context, string, options) error{
	"franz-go": {
		"produce":    produce,
		"consume":    consume,
		"offsets":    askOffsets,
		"administer": administer,
	},
	"sarama":   {"produce": produceSarama, "consume": consumeSarama},
	"kafka-go": {"produce": produceKafkaGo, "consume": consumeKafkaGo},
}

// run does what a command asks for until it is told to stop, and reports how it ended.
func run(until context.Context, verb, id string, given options) {
	if err := libraries[os.Args[1]][verb](until, id, given); err != nil {
		fmt.Fprintln(os.Stderr, id, err)
		report(id, "crashed", fields{"error": err.Error()})
		return
	}
	report(id, "done", nil)
}
