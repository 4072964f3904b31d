package server

import (
	"bytes"
	"encoding/json"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"lockstep/live"
	"lockstep/peers/embedded"
	"lockstep/sim"
)

// view is what the bucket holds: entries by key.
type view map[string]Entry

// observer reads the bucket in the server's own process.
type observer struct {
	r      *run
	bucket Bucket
}

func init() {
	embedded.Register(embedded.Kind[view]{
		Program: "nats-server", Version: "v" + server.VERSION,
		Is: func(s sim.Server) bool {
			_, ok := sim.Streaming(s).(*Server)
			return ok
		},
		Config: func(s sim.Server) string {
			text, err := json.Marshal(sim.Streaming(s).(*Server).bucket)
			if err != nil {
				panic(err) // a bucket has plain fields
			}
			return string(text)
		},
		Serve: func(dir string, l net.Listener, config string, changed func()) (embedded.Reader[view], error) {
			var o observer
			if err := json.Unmarshal([]byte(config), &o.bucket); err != nil {
				return nil, err
			}
			var err error
			if o.r, err = open(dir, l, o.bucket, changed); err != nil {
				return nil, err
			}
			go o.r.serve()
			return &o, nil
		},
		View:  func(s sim.Server, v view) { sim.Streaming(s).(*Server).Show(v) },
		Times: live.Settle{First: 20 * time.Millisecond, Quiet: 4 * time.Millisecond, Most: 200 * time.Millisecond},
		// A client asks by a message: PUB, or HPUB with a header.
		Nothing: func(message []byte) bool { return !bytes.Contains(message, []byte("PUB ")) },
	})
}

// Look implements embedded.Reader.
func (o *observer) Look(locks []string) ([]view, error) {
	v := view{}
	for _, lock := range locks {
		if e, ok := o.r.entry(o.bucket, lock); ok {
			v[lock] = e
		}
	}
	return []view{v}, nil
}

// Left implements embedded.Reader.
func (o *observer) Left() ([]string, error) { return o.r.keys(o.bucket), nil }
