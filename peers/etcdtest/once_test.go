package etcdtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/model"
	"lockstep/peers/etcdtest"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// reusing is a lock whose handle keeps one lease for all its holds. Only its calls renew the lease.
type reusing struct{ *lock }

func (l reusing) Lock(ctx context.Context) error {
	for {
		if l.lease == 0 {
			granted, err := l.c.Grant(ctx, int64(ttl/time.Second))
			if err != nil {
				return err
			}
			l.lease = granted.ID
		}
		free := clientv3.Compare(clientv3.CreateRevision(l.name), "=", 0)
		r, err := l.c.Txn(ctx).If(free).Then(clientv3.OpPut(l.name, "", clientv3.WithLease(l.lease))).Commit()
		if err == nil && r.Succeeded {
			l.revision = r.Header.Revision
			_, err = l.c.KeepAliveOnce(ctx, l.lease)
		}
		if err != nil {
			// The key that may exist ends with its lease.
			l.lease, l.revision = 0, 0
			return err
		}
		if r.Succeeded {
			return nil
		}
		if err := l.wait(ctx, r.Header.Revision+1); err != nil {
			return err
		}
	}
}

func (l reusing) Extend(ctx context.Context) error {
	_, err := l.c.KeepAliveOnce(ctx, l.lease)
	return err
}

func (l reusing) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	mine := clientv3.Compare(clientv3.CreateRevision(l.name), "=", l.revision)
	r, err := l.c.Txn(ctx).If(mine).Then(clientv3.OpDelete(l.name)).Commit()
	if err != nil {
		return err
	}
	if l.revision = 0; !r.Succeeded {
		return locktest.ErrNotHeld
	}
	return nil
}

// A renewal by KeepAliveOnce belongs to the call that sent it, whichever client granted the lease. One by KeepAlive belongs to no call.
func TestARenewalByACallBelongsToIt(t *testing.T) {
	h := sim.NewHost(t)
	for name, as := range map[string]func(*etcdtest.Client, string) locktest.Lock{
		"by its calls": func(c *etcdtest.Client, name string) locktest.Lock { return reusing{&lock{c: c.Client, name: name}} },
		"by its calls, of a lock": func(c *etcdtest.Client, name string) locktest.Lock {
			return reusing{&lock{c: c.ForLock(name), name: name}}
		},
		"by a goroutine":           func(c *etcdtest.Client, name string) locktest.Lock { return &lock{c: c.Client, name: name} },
		"by a goroutine of a lock": func(c *etcdtest.Client, name string) locktest.Lock { return &lock{c: c.ForLock(name), name: name} },
	} {
		byCalls := strings.HasPrefix(name, "by its calls")
		s := orders
		s.Name = name
		if byCalls {
			s.Renewed, s.RenewEvery = false, 0
		}
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			c, err := etcdtest.NewClient(p)
			if err != nil {
				return nil, err
			}
			return renewing{c, as}, nil
		}
		if err := locktest.Register(h, s); err != nil {
			t.Fatal(err)
		}
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		of, renewals := story.Of(l, 0), 0
		for _, st := range append([]story.Story{story.LongHold}, story.Basic...) {
			if st.Lacks(of) != "" || play.Applies(st.Scenario(of), l) != nil || !byCalls && st.Name != story.LongHold.Name {
				continue
			}
			v := play.Run(h, st.Scenario(of), l, 1)
			for _, f := range v.Findings {
				if f.Class == judges.ClassBug {
					t.Errorf("%s: it breaks %s in %s", name, f.Judge, st.Name)
				}
			}
			for _, e := range v.Played.Record.Events {
				if e.Kind == model.KindSend && strings.HasPrefix(e.Says, "Lease/LeaseKeepAlive ") {
					if renewals++; (e.Op > 0) != byCalls {
						t.Errorf("%s, %s: the renewal at %v belongs to operation %d", name, st.Name, time.Duration(e.AtNs), e.Op)
					}
				}
			}
		}
		if renewals == 0 {
			t.Errorf("%s: nothing was renewed", name)
		}
	}
}

type renewing struct {
	*etcdtest.Client
	as func(*etcdtest.Client, string) locktest.Lock
}

func (c renewing) Lock(name string) (locktest.Lock, error) { return c.as(c.Client, name), nil }
