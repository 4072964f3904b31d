package redis

import (
	"sync"

	"github.com/alicebob/miniredis/v2"
)

// idleMiniredis are the miniredis of earlier runs without keys, scripts and subscribers, which are as good as new. A
// new one takes longer than some short runs, since it makes a table of all commands.
var idleMiniredis struct {
	sync.Mutex
	list []idleServer
}

type idleServer struct {
	m     *miniredis.Miniredis
	turns int
}

// turnsMax is the number of runs that a miniredis serves: it remembers the name of each key that it ever had.
const turnsMax = 100

// takeMiniredis returns a miniredis that serves, without a listener, and the number of the run that it serves. fresh
// asks for a new one.
func takeMiniredis(fresh bool) (m *miniredis.Miniredis, turn int) {
	idleMiniredis.Lock()
	defer idleMiniredis.Unlock()
	if last := len(idleMiniredis.list) - 1; last >= 0 && !fresh {
		s := idleMiniredis.list[last]
		idleMiniredis.list = idleMiniredis.list[:last]
		return s.m, s.turns + 1
	}
	m = miniredis.NewMiniRedis()
	pipe, err := m.Dial() // starts it
	if err != nil {
		panic("redis: miniredis did not start: " + err.Error())
	}
	_ = pipe.Close()
	return m, 1
}

// giveMiniredisBack keeps m, which is as good as new, for a later run.
func giveMiniredisBack(m *miniredis.Miniredis, turns int) {
	idleMiniredis.Lock()
	defer idleMiniredis.Unlock()
	idleMiniredis.list = append(idleMiniredis.list, idleServer{m, turns})
}
