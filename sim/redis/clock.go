package redis

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
	"lockstep/sim"
)

// instant returns the index of the option of a SET that names the instant at which the key
// ends, or 0.
func instant(args []string) int {
	for i := 2; i+1 < len(args); i++ {
		if strings.EqualFold(args[i], "PXAT") || strings.EqualFold(args[i], "EXAT") {
			return i
		}
	}
	return 0
}

// setToNow executes a SET whose key ends with this millisecond. It reports whether the command is
// such a SET. Redis keeps such a key until then, and miniredis keeps it for ever. The key gets a
// millisecond more, until the command of the client has been executed.
func (s *Server) setToNow(peer *mserver.Peer, args []string) bool {
	i := instant(args)
	if i == 0 {
		return false
	}
	at, err := strconv.ParseInt(args[i+1], 10, 64)
	if strings.EqualFold(args[i], "EXAT") {
		at *= 1000
	}
	if err != nil || at != s.start.UnixMilli()+s.nowMs()+s.ahead.Milliseconds() {
		return false
	}
	words := append([]string{"SET"}, args...)
	words[i+1], words[i+2] = "PX", "1"
	s.ending = append(s.ending, args[0])
	client := s.executing
	s.executing = nil
	there := s.notify != 0 && s.runPart(peer, "EXISTS", args[0]) == ":1\r\n"
	reply := s.runPart(peer, words...)
	s.executing = client
	peer.WriteRaw(reply)
	if s.notify != 0 && !strings.HasPrefix(reply, "-") && (reply == "+OK\r\n" || !isNull(reply) || len(args) > 4) {
		s.publishEvents(peer, "SET", args, reply, map[string]bool{args[0]: there}, map[string]bool{args[0]: true})
	}
	return true
}

// letEnd gives keys of setToNow the rest of this millisecond.
func (s *Server) letEnd() {
	for _, k := range s.ending {
		if s.m.TTL(k) == time.Millisecond {
			s.m.SetTTL(k, time.Millisecond/2)
		}
	}
	s.ending = nil
}

func (s *Server) nowMs() int64 { return s.nowNs / int64(time.Millisecond) }

// setClock moves the server's clock to this millisecond.
func (s *Server) setClock() {
	s.m.SetTime(s.start.Add(time.Duration(s.nowMs())*time.Millisecond + s.ahead))
}

// setAhead changes how far the server's wall clock is ahead. Keys end at the same time of this
// clock as before.
func (s *Server) setAhead(ahead time.Duration) {
	s.setClock()
	_ = s.m.Keys() // lets miniredis see the time until now
	by := ahead - s.ahead
	s.ahead = ahead
	s.setClock()
	if by < 0 {
		// miniredis counts the time that a key has left, and a clock that goes back
		// adds nothing to it.
		s.m.FastForward(by)
	}
	_ = s.m.Keys()
}

// StepClock is sim.Parts.StepClock. A key whose time has passed is gone at once.
func (s *Server) StepClock(nowNs int64, by time.Duration, out *sim.Effects) {
	s.begin(nowNs, out)
	s.setClock()
	s.letExpire(func() { s.setAhead(s.ahead + by.Truncate(time.Millisecond)) })
}

// Next is sim.Parts.Next. The next tick is due when a key runs out. In Redis, a key
// with n ms to live still exists n ms later and is gone one millisecond after that.
// miniredis removes the key after n ms. Therefore Next adds half a millisecond to each
// fresh time to live. PTTL answers the same as before.
func (s *Server) Next() (atNs int64, ok bool) {
	first, now := int64(math.MaxInt64), s.nowMs()
	for _, k := range s.m.Keys() {
		ttl := s.m.TTL(k)
		if ttl <= 0 {
			continue
		}
		if ttl%time.Millisecond == 0 {
			s.m.SetTTL(k, ttl+time.Millisecond/2)
		}
		first = min(first, now+int64(ttl/time.Millisecond)+1)
	}
	if first == math.MaxInt64 {
		return 0, false
	}
	return first * int64(time.Millisecond), true
}

// Tick is sim.Parts.Tick. It removes the keys that have run out.
func (s *Server) Tick(nowNs int64, out *sim.Effects) {
	s.begin(nowNs, out)
	s.letExpire(s.setClock)
}

// letExpire moves the server's clock and removes the keys that have run out by then.
func (s *Server) letExpire(move func()) {
	before := s.m.Keys()
	move()
	after := s.m.Keys()
	var gone []string
	for _, k := range before {
		if !slices.Contains(after, k) {
			s.out.Record(model.Event{Kind: model.KindExpire, Key: k})
			gone = append(gone, k)
		}
	}
	s.sayGone(gone, notifyExpired, "expired")
	s.snapshot()
	s.replicate()
}

// sayGone notifies the clients that track keys, and those that listen to events, of keys that are gone without a
// command. A stalled server does so at the end of the stall.
func (s *Server) sayGone(keys []string, class notifications, event string) {
	if len(s.tracking.clients) == 0 && s.notify == 0 || len(keys) == 0 {
		return
	}
	if s.stallTill > s.nowNs {
		s.out.Plan(s.stallTill, sim.ClassDelivery, func(nowNs int64, out *sim.Effects) {
			s.begin(nowNs, out)
			s.sayGone(keys, class, event)
		})
		return
	}
	s.publishGone(keys, class, event)
	s.invalidate(keys, nil)
}
