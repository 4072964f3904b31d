package sim

import (
	"context"
	"errors"
	"net"
	"sync"
)

// makeResolver lets package net make the channels with which its resolver guards its configuration. net
// makes them at the first lookup of the program. If that were in a bubble, a lookup in the next bubble
// would end the program, since a channel of one bubble cannot be used in another one. A lock whose
// client dials a host name by itself looks up a name in each world. The lookup here sends nothing.
var makeResolver = sync.OnceFunc(func() {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no network")
	}}
	ended, end := context.WithCancel(context.Background())
	end()
	_, _ = r.LookupAddr(ended, "127.0.0.1") // whatever it answers, the channels are there
})
