package server

import (
	"bytes"
	"net"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"lockstep/live"
	"lockstep/peers/embedded"
	"lockstep/sim"
)

// view has all entries of etcd at one revision, with their whole keys. The State of a subject may read
// any key. It need not be below the name of a lock.
type view []Entry

// observer reads the keys of a member in its own process.
type observer struct {
	m        *member
	revision int64        // of the last view
	told     atomic.Int64 // the newest revision that the watch has told of; the store may not have it yet
}

func init() {
	embedded.Register(embedded.Kind[view]{
		Program: "etcd", Version: "v" + version.Version,
		Is: func(s sim.Server) bool {
			_, ok := sim.Streaming(s).(*Server)
			return ok
		},
		Serve: func(dir string, l net.Listener, _ string, changed func()) (embedded.Reader[view], error) {
			m, err := serve(dir, l)
			if err != nil {
				return nil, err
			}
			o := &observer{m: m, revision: m.etcd.KV().Rev()}
			return o, m.watch(func(revision int64) {
				o.told.Store(revision)
				changed()
			})
		},
		View:    func(s sim.Server, v view) { sim.Streaming(s).(*Server).Show(v) },
		Times:   live.Settle{First: 25 * time.Millisecond, Quiet: 10 * time.Millisecond, Most: 200 * time.Millisecond},
		Nothing: housekeeping,
	})
}

// preface is how a client of HTTP/2 begins.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// housekeeping reports whether bytes are whole frames of HTTP/2 that neither begin a request nor
// carry a part of one: RFC 9113, section 6.
func housekeeping(b []byte) bool {
	const head, data, headers, reset, continuation = 9, 0, 1, 3, 9
	b = bytes.TrimPrefix(b, []byte(preface))
	for len(b) > 0 {
		if len(b) < head {
			return false
		}
		size := head + int(b[0])<<16 + int(b[1])<<8 + int(b[2])
		switch b[3] {
		case data, headers, reset, continuation:
			return false
		}
		if len(b) < size {
			return false
		}
		b = b[size:]
	}
	return true
}

// Look implements embedded.Reader. Each revision since the last one is a view.
func (o *observer) Look([]string) (views []view, err error) {
	newest := o.m.etcd.KV().Rev()
	for told := o.told.Load(); newest < told; newest = o.m.etcd.KV().Rev() {
		time.Sleep(time.Millisecond)
	}
	for r := min(o.revision+1, newest); r <= newest; r++ {
		v, err := o.m.entries("", r)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	o.revision = newest
	return views, nil
}

// Left implements embedded.Reader.
func (o *observer) Left() (keys []string, err error) {
	all, err := o.m.matching("*")
	for _, kv := range all {
		keys = append(keys, string(kv.Key))
	}
	return keys, err
}

// Delete implements embedded.Deleter.
func (o *observer) Delete(glob string) error {
	found, err := o.m.matching(glob)
	if err != nil {
		return err
	}
	return o.m.delete(found)
}
