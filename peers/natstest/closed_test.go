package natstest

import (
	"errors"
	"testing"
)

// A client that is closed connects no more, neither for a lock that it had nor for a new one.
func TestAClosedClientDoesNotConnect(t *testing.T) {
	c := &Client{}
	before := c.ForLock("orders")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Connection{before, c.ForLock("orders")} {
		if _, err := k.KeyValue(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("KeyValue returns %v", err)
		}
	}
}
