package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const lookEvery = 100 * time.Millisecond

// administer does admin calls on a topic of its own, and looks at the effect of each.
func administer(until context.Context, id string, options options) error {
	client, err := options.client()
	if err != nil {
		return err
	}
	defer client.Close()
	admin, topic := kadm.NewClient(client), options["topic"]
	partitions := func() (int, error) {
		topics, err := admin.ListTopics(until, topic)
		return len(topics[topic].Partitions), err
	}
	exists := func() (bool, error) {
		topics, err := admin.ListTopics(until)
		return topics.Has(topic), err
	}

	if _, err := admin.CreateTopic(until, 1, 3, nil, topic); err != nil {
		return err
	}
	if err := see(id, "create", exists); err != nil {
		return err
	}
	if err := see(id, "describe", func() (bool, error) {
		count, err := partitions()
		return count == 1, err
	}); err != nil {
		return err
	}
	grown, err := admin.UpdatePartitions(until, 2, topic)
	if err != nil {
		return err
	}
	if err := grown.Error(); err != nil {
		return err
	}
	if err := see(id, "grow", func() (bool, error) {
		count, err := partitions()
		return count == 2, err
	}); err != nil {
		return err
	}
	if err := see(id, "settings", func() (bool, error) {
		return hasSetting(until, admin, topic, "min.insync.replicas")
	}); err != nil {
		return err
	}
	if _, err := admin.DeleteTopic(until, topic); err != nil {
		return err
	}
	return see(id, "delete", func() (bool, error) {
		found, err := exists()
		return !found, err
	})
}

func hasSetting(until context.Context, admin *kadm.Client, topic, name string) (bool, error) {
	described, err := admin.DescribeTopicConfigs(until, topic)
	if err != nil {
		return false, err
	}
	resource, err := described.On(topic, nil)
	if err != nil {
		return false, err
	}
	for _, setting := range resource.Configs {
		if setting.Key == name {
			return true, nil
		}
	}
	return false, nil
}

// see waits for an effect and reports the call: brokers learn of each other's changes a moment
// later, and the harness has the deadline.
func see(id, call string, effect func() (bool, error)) error {
	for {
		seen, err := effect()
		if err != nil {
			return err
		}
		if seen {
			report(id, "called", fields{"call": call})
			return nil
		}
		time.Sleep(lookEvery)
	}
}
