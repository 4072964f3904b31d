package server

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/model"
	"lockstep/sim"
)

// told plays a world in which a client sends requests, one every 100 ms. It returns the answers,
// and the keys that run out. An empty request waits for two seconds.
func told(t *testing.T, requests ...string) string {
	t.Helper()
	heard, _ := played(t, requests)
	return heard
}

// played is told, and also returns the record.
func played(t *testing.T, requests []string) (string, *model.Record) {
	t.Helper()
	var heard []string
	cfg := sim.Config{
		Chooser: sim.NewSeeded(1), LatencyMin: time.Millisecond, LatencyMax: time.Millisecond,
		Nodes: Servers(1).Nodes(), Processes: []sim.ProcessConfig{{Name: "a", Threads: 1}},
		Name:  func([]string, sim.Author) sim.Command { return sim.Command{} },
		Quiet: 5 * time.Second, Settle: time.Second, Drain: time.Second, MaxEvents: 10_000,
	}
	r := sim.Run(sim.GuestHost(t), cfg, func(w *sim.World) {
		p := w.Process("a")
		thread := p.Threads()[0]
		thread.Start(func() {
			c, err := p.DialContext(context.Background(), "tcp", cfg.Nodes[0].Addr)
			if err != nil {
				panic(err)
			}
			defer func() { _ = c.Close() }()
			for _, request := range requests {
				if request == "" {
					thread.Sleep(2 * time.Second)
					continue
				}
				_, _ = io.WriteString(c, request+"\r\n")
				thread.Sleep(100 * time.Millisecond)
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				buf := make([]byte, 1000)
				n, err := c.Read(buf)
				if text := strings.TrimSuffix(strings.ReplaceAll(string(buf[:n]), "\r\n", " "), " "); text != "" {
					heard = append(heard, text)
				} else if err == io.EOF {
					heard = append(heard, "EOF")
				}
			}
		})
	})
	for _, e := range r.Record.Events {
		if e.Kind == model.KindExpire {
			heard = append(heard, fmt.Sprintf("%s ran out at %v", e.Key, time.Duration(e.AtNs).Round(time.Millisecond)))
		}
	}
	return strings.Join(heard, ", "), r.Record
}

// A command of the real program that this server does not know is noted, and a word that neither knows is not.
func TestACommandOfTheRealProgramIsNoted(t *testing.T) {
	heard, rec := played(t, []string{"mg orders v", "mg orders v", "mget orders", "add orders 0 0 1\r\na"})
	if want := "ERROR, ERROR, ERROR, STORED"; heard != want {
		t.Errorf("the server answers %q; want %q", heard, want)
	}
	if met := rec.Unsimulated(); !slices.Equal(met, []string{"the command mg"}) {
		t.Errorf("the record notes %q", met)
	}
}

// An item runs out at a tick. An item that a request ends does not run out.
func TestInAWorld(t *testing.T) {
	for _, c := range []struct {
		name, want string
		requests   []string
	}{
		{"its time is over", "STORED, END, k ran out at 1s", []string{"set k 0 1 1\r\nx", "", "get k"}},
		{"a touch with a time in the past", "STORED, TOUCHED, END", []string{"set k 0 1 1\r\nx", "touch k -1", "", "get k"}},
		{"a cas with a time in the past", "STORED, STORED, END", []string{"set k 0 1 1\r\nx", "cas k 0 -1 1 1\r\ny", "", "get k"}},
		{"a flush", "STORED, OK, END", []string{"set k 0 1 1\r\nx", "flush_all", "", "get k"}},
		{"a flush later", "STORED, OK, VALUE k 0 1 x END, END, k ran out at 1s", []string{"set k 0 0 1\r\nx", "flush_all 2", "get k", "", "get k"}},
		{"no answer", "VALUE k 0 1 x END", []string{"set k 0 0 1 noreply\r\nx", "get k"}},
		{"quit", "VERSION 1.6.18, EOF", []string{"version", "quit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(t, c.requests...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The judge of extensions must know the tick.
func TestTheServersKnowTheirTick(t *testing.T) {
	if s, ok := Servers(1).(locktest.Ticking); !ok || s.Tick() != time.Second {
		t.Errorf("the servers %T do not say that they tick once a second", Servers(1))
	}
}
