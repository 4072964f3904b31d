// Package onredis describes locks on Redis: the server of their worlds, the commands
// that they send, and the state that the server holds for them. A [Protocol] is the
// Servers of a subject.
package onredis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// Protocol describes the commands that a lock sends to a Redis server, and the state that
// the server holds for it. Locks have their names in the scenario. Owners have the form
// process/thread. Protocol implements subject.Servers with one server. State is required.
// Parties is required if there are Scripts.
type Protocol struct {
	// Scripts maps the text of each script that the lock sends to its role.
	Scripts map[string]model.Role
	// Role returns the role of a script that is not in Scripts by its text. It may be nil.
	Role func(text string) model.Role
	// Parties returns the locks that a script with these keys and arguments is about,
	// and the owner for each lock. There is at least one key, but there may be no
	// argument. The last parameter names the locks of the scenario.
	Parties func(role model.Role, keys, argv, locks []string) (about, owners []string)
	// Learned reports whether the values by which the server knows owners name no thread.
	// Then State gives these values, and the world learns which thread wrote each. A command
	// with owners is for the thread that sends it.
	Learned bool
	// Command describes a command that runs no script. If Command is nil, no such
	// command matters.
	Command func(words []string) sim.Command
	// State reads the state that the server holds for a lock. Deadlines are in
	// milliseconds since the start of the run, see Keyspace. State returns nil for a free
	// lock.
	State func(keys simredis.Keyspace, lock string) *model.LockState
}

// Check implements subject.Servers.
func (p *Protocol) Check() error {
	switch {
	case p.State == nil:
		return errors.New("has no State")
	case p.Parties == nil && (len(p.Scripts) > 0 || p.Role != nil):
		return errors.New("has no Parties")
	}
	var unknown []model.Role
	for _, role := range p.Scripts {
		if role != "" && !slices.Contains(model.Roles, role) {
			unknown = append(unknown, role)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("gives a script the unknown role %q; the roles are %s", slices.Min(unknown), roleNames())
	}
	return nil
}

func roleNames() string {
	names := make([]string, len(model.Roles))
	for i, role := range model.Roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

// serverAddr is the address of the server.
const serverAddr = "192.0.2.1:6379"

// Count implements subject.Servers.
func (*Protocol) Count() int { return 1 }

// New implements subject.Servers.
func (p *Protocol) New(locks []string, o subject.ServerOptions) subject.World {
	server := simredis.New(simredis.Config{
		Replicas: o.Replicas, LagMin: o.LagMin, LagMax: o.LagMax,
		Scripts: slices.Collect(maps.Keys(p.Scripts)), Observe: p.Observe,
	})
	if p.Learned {
		return subject.World{
			Nodes:     []sim.Node{{Addr: serverAddr, Server: server}},
			Published: server.Published,
			Lineage:   true, Locks: locks,
			State: func(nowNs int64, lock string) *model.LockState { return p.State(server.At(nowNs), lock) },
		}
	}
	return subject.World{
		Nodes:     []sim.Node{{Addr: serverAddr, Server: server, Locks: locks}},
		Published: server.Published,
	}
}

// Observe returns the result of State, with an empty state in place of nil.
func (p *Protocol) Observe(keys simredis.Keyspace, lock string) *model.LockState {
	if s := p.State(keys, lock); s != nil {
		return s
	}
	return &model.LockState{}
}

// Commands implements subject.Servers. The words of a command show its purpose. Its author
// matters only where owners are Learned. The function that it returns learns scripts as they are sent.
func (p *Protocol) Commands(locks []string) func(words []string, by sim.Author) sim.Command {
	roles := make(map[string]model.Role, 2*len(p.Scripts)) // by text and by SHA
	for text, role := range p.Scripts {
		roles[text], roles[hash(text)] = role, role
	}
	learn := func(text string) {
		if _, known := roles[text]; !known && p.Role != nil {
			role := p.Role(text)
			roles[text], roles[hash(text)] = role, role
		}
	}
	return func(words []string, by sim.Author) sim.Command {
		cmd := strings.ToUpper(words[0])
		switch {
		case cmd == "EVAL" && len(words) > 1:
			learn(words[1])
		case cmd == "SCRIPT" && len(words) > 2 && strings.EqualFold(words[1], "LOAD"):
			learn(words[2])
		}
		if cmd != "EVAL" && cmd != "EVALSHA" {
			if p.Command == nil {
				return sim.Command{}
			}
			return p.Command(words)
		}
		if len(words) <= 3 {
			return sim.Command{}
		}
		c := sim.Command{Script: roles[words[1]]}
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 1 || 3+n > len(words) || p.Parties == nil {
			return c
		}
		c.Locks, c.Owners = p.Parties(c.Script, words[3:3+n], words[3+n:], locks)
		if p.Learned && by.Thread == "" {
			c.Owners = nil
		} else if p.Learned {
			for i := range c.Owners {
				c.Owners[i] = by.Thread
			}
		}
		return c
	}
}

// hashes caches the SHA of each script by its text.
var hashes sync.Map

func hash(text string) string {
	if sha, ok := hashes.Load(text); ok {
		return sha.(string)
	}
	sha := redis.NewScript(text).Hash()
	hashes.Store(text, sha)
	return sha
}
