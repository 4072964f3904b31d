package redisson

import (
	"errors"
	"fmt"
	"testing"
)

// said is an error that a server answered.
type said string

func (a said) Error() string { return string(a) }
func (said) RedisError()     {}

func TestRedirectionsAreRead(t *testing.T) {
	for _, c := range []struct {
		err    error
		addr   string
		asking bool
	}{
		{said("MOVED 105 127.0.0.1:7001"), "127.0.0.1:7001", false},
		{said("ASK 105 127.0.0.1:7001"), "127.0.0.1:7001", true},
		{fmt.Errorf("eval: %w", said("ASK 105 127.0.0.1:7001")), "127.0.0.1:7001", true},
		{said("TRYAGAIN Multiple keys request during rehashing of slot"), "", false},
		{said("ERR MOVED"), "", false},
		{errors.New("MOVED 105 127.0.0.1:7001"), "", false}, // not an answer of a server
		{nil, "", false},
	} {
		if addr, asking := redirection(c.err); addr != c.addr || asking != c.asking {
			t.Errorf("%v: %q, %v; want %q, %v", c.err, addr, asking, c.addr, c.asking)
		}
	}
}
