package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

type fields map[string]any

var output struct {
	sync.Mutex
	*json.Encoder
}

func init() {
	output.Encoder = json.NewEncoder(os.Stdout)
}

// report writes an event for the harness, one JSON object a line.
func report(id, event string, more fields) {
	line := fields{"id": id, "event": event}
	for name, value := range more {
		line[name] = value
	}
	output.Lock()
	defer output.Unlock()
	if err := output.Encode(line); err != nil {
		panic(err)
	}
}

// now is in seconds since 1970.
func now() float64 {
	return float64(time.Now().UnixMicro()) / 1e6
}

// sinceMs is how many milliseconds passed since a time in seconds.
func sinceMs(at float64) float64 {
	return (now() - at) * 1e3
}
