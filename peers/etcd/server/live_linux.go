package server

import (
	"net"
	"time"

	"lockstep/live"
	"lockstep/peers/embedded"
	"lockstep/sim"
)

// view is what etcd held at one revision: entries by prefix.
type view map[string][]Entry

// observer reads the keys of a member in its own process.
type observer struct {
	m        *member
	revision int64 // of the last view
}

func init() {
	embedded.Register(embedded.Kind[view]{
		Program: "etcd", Module: "go.etcd.io/etcd/server/v3",
		Is: func(s sim.Server) bool {
			_, ok := sim.Streaming(s).(*Server)
			return ok
		},
		Serve: func(dir string, l net.Listener, _ string, changed func()) (embedded.Reader[view], error) {
			m, err := serve(dir, l)
			if err != nil {
				return nil, err
			}
			return &observer{m, m.etcd.KV().Rev()}, m.watch(changed)
		},
		View:  func(of sim.Server, v view) { sim.Streaming(of).(*Server).Show(v) },
		Times: live.Settle{First: 25 * time.Millisecond, Quiet: 8 * time.Millisecond, Most: 200 * time.Millisecond},
	})
}

// Look implements embedded.Reader. Each revision since the last one is a view.
func (o *observer) Look(locks []string) (views []view, err error) {
	newest := o.m.etcd.KV().Rev()
	for r := min(o.revision+1, newest); r <= newest; r++ {
		v := view{}
		for _, lock := range locks {
			prefix := lock + "/"
			if v[prefix], err = o.m.entries(prefix, r); err != nil {
				return nil, err
			}
		}
		views = append(views, v)
	}
	o.revision = newest
	return views, nil
}

// Left implements embedded.Reader.
func (o *observer) Left() ([]string, error) { return o.m.keys() }
