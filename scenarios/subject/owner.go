package subject

import (
	"strings"

	"lockstep/model"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// Owner returns the process/thread that a lock writes as CLIENT:OWNER, the client
// being named after its process. What the lock writes before it, with a colon, is
// left out.
func Owner(field string) string {
	i := strings.LastIndexByte(field, ':')
	if i < 0 {
		return field
	}
	client := field[:i]
	return client[strings.LastIndexByte(client, ':')+1:] + "/" + field[i+1:]
}

// Owners returns the Owner of each field.
func Owners(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = Owner(f)
	}
	return out
}

// OwnerField returns how a lock writes a process/thread: as CLIENT:OWNER.
func OwnerField(thread string) string { return strings.Replace(thread, "/", ":", 1) }

// ReadQueue fills in the waiters of a lock, which the server keeps in a list, and
// their deadlines, which it keeps in a sorted set by Unix milliseconds.
func ReadQueue(s *model.LockState, keys simredis.Keyspace, queue, deadlines string) {
	s.Queue = Owners(keys.List(queue))
	for member, score := range keys.SortedSet(deadlines) {
		if s.Deadlines == nil {
			s.Deadlines = map[string]int64{}
		}
		s.Deadlines[Owner(member)] = int64(score) - sim.EpochMs
	}
}

// OneString is the protocol of a lock that keeps its owner's name in one string: SET,
// DEL, and scripts whose first key is the lock and whose last argument is the owner.
func OneString(scripts map[string]model.Role) Protocol {
	return Protocol{
		Scripts: scripts,
		Parties: func(_ model.Role, keys, argv, _ []string) (of, owners []string) {
			if len(argv) == 0 {
				return keys[:1], nil
			}
			return keys[:1], Owners(argv[len(argv)-1:])
		},
		Command: func(words []string) sim.Command {
			switch cmd := strings.ToUpper(words[0]); {
			case cmd == "SET" && len(words) >= 3:
				return sim.Command{Script: model.RoleAcquire, Locks: words[1:2], Owners: Owners(words[2:3])}
			case cmd == "DEL" && len(words) == 2:
				return sim.Command{Script: model.RoleUnlock, Locks: words[1:2]}
			}
			return sim.Command{}
		},
		State: func(keys simredis.Keyspace, lock string) *model.LockState {
			s := &model.LockState{}
			if holder, ok := keys.String(lock); ok {
				s.Owner, s.Count, s.ExpiresMs = Owner(holder), 1, keys.ExpiresMs(lock)
			}
			return s
		},
		Keys: func(lock string) []string { return []string{lock} },
	}
}
