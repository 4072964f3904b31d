package etcdtest_test

import (
	"context"
	"testing"

	"go.etcd.io/etcd/client/v3"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/etcdtest"
)

type written struct{ *etcdtest.Client }

func (c written) ForLock(name string) drawntest.Replacer { return replacer{c.Client.ForLock(name)} }

type replacer struct{ c *clientv3.Client }

func (r replacer) Read(ctx context.Context, key string) (string, uint64, error) {
	found, err := r.c.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		return "", 0, err
	}
	return string(found.Kvs[0].Value), uint64(found.Kvs[0].ModRevision), nil
}

func (r replacer) Replace(ctx context.Context, key, value string, version uint64) (bool, error) {
	same := clientv3.Compare(clientv3.ModRevision(key), "=", int64(version))
	done, err := r.c.Txn(ctx).If(same).Then(clientv3.OpPut(key, value)).Commit()
	return err == nil && done.Succeeded, err
}

// A hold may end at an instant of the wall clock that its value has.
func TestAHoldWhoseEndIsInAValue(t *testing.T) {
	drawntest.Written{
		Servers: etcdtest.Servers(),
		Get: func(s locktest.Snapshot, key string) string {
			for _, e := range etcdtest.Entries(s, key) {
				if e.Key == "" {
					return e.Value
				}
			}
			return ""
		},
		Open: func(p *locktest.Process) (drawntest.WrittenClient, error) {
			c, err := etcdtest.NewClient(p)
			return written{c}, err
		},
	}.Ends(t)
}
