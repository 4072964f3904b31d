package natstest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/natstest"
)

type written struct{ *natstest.Client }

func (c written) ForLock(name string) drawntest.Replacer { return replacer{c.Client.ForLock(name)} }

type replacer struct{ conn *natstest.Connection }

func (r replacer) Read(ctx context.Context, key string) (string, uint64, error) {
	kv, err := r.conn.KeyValue(ctx)
	if err != nil {
		return "", 0, err
	}
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	return string(e.Value()), e.Revision(), nil
}

func (r replacer) Replace(ctx context.Context, key, value string, version uint64) (bool, error) {
	kv, err := r.conn.KeyValue(ctx)
	if err != nil {
		return false, err
	}
	_, err = kv.Update(ctx, key, []byte(value), version)
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return false, nil
	}
	return err == nil, err
}

// A hold may end at an instant of the wall clock that its value has.
func TestAHoldWhoseEndIsInAValue(t *testing.T) {
	drawntest.Written{
		Servers: natstest.Servers(natstest.Bucket{KeyValueConfig: jetstream.KeyValueConfig{Bucket: "locks"}, OnTime: true}),
		Get: func(s locktest.Snapshot, key string) string {
			e, _ := natstest.Get(s, key)
			return e.Value
		},
		Open: func(p *locktest.Process) (drawntest.WrittenClient, error) {
			return written{natstest.NewClient(p, "locks")}, nil
		},
	}.Ends(t)
}
