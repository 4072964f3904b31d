package server

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/sim"
)

// silent is a listener to which nobody connects.
type silent struct{ closed chan struct{} }

func (l silent) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l silent) Close() error {
	close(l.closed)
	return nil
}

func (silent) Addr() net.Addr { return &net.TCPAddr{} }

// The world reads the state at the end of the lease of each row, whatever row it read last.
func TestTheWorldIsToldOfTheEndOfEachLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		began := time.Now()
		s := &Server{}
		err := s.Boot(sim.Setup{
			Listen:  func() net.Listener { return silent{make(chan struct{})} },
			Changed: func() { told = append(told, time.Since(began)) },
			Instant: func() sim.Instant { return sim.Instant{} },
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, seconds := range map[string]int{"orders": 1, "stock": 2} {
			s.must(s.now.run(fmt.Sprintf("INSERT INTO locks VALUES ('%s', 'a', TIMESTAMPADD(SECOND, %d, NOW(6)), 1)", name, seconds)))
		}
		for _, name := range []string{"orders", "stock", "orders", "stock"} {
			if r := s.Row(name); r == nil || r.Owner != "a" || r.Expires <= 0 {
				t.Fatalf("the row of %s is %v", name, r)
			}
		}
		time.Sleep(10 * time.Second)
		if got := fmt.Sprint(told); got != "[1s 2s]" {
			t.Errorf("the world is told at %s; want [1s 2s]", got)
		}
		s.Stop()
		synctest.Wait()
	})
}
