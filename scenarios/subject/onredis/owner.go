package onredis

import (
	"strconv"
	"strings"

	"lockstep/model"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// Owner returns the process/thread of a field that ends in CLIENT:OWNER, where the
// client has the name of its process. It ignores anything before CLIENT and its colon.
// A field without a colon is returned as it is.
func Owner(field string) string {
	i := strings.LastIndexByte(field, ':')
	if i < 0 {
		return field
	}
	client := field[:i]
	return client[strings.LastIndexByte(client, ':')+1:] + "/" + field[i+1:]
}

// ThreadOf returns the process/thread of a field that ends in CLIENT:OWNER, where each thread has many owners:
// the remainder of an owner divided by owners is its thread. The sign does not count.
func ThreadOf(field string, owners int64) string {
	owner := Owner(field)
	number := strings.LastIndexByte(owner, '/') + 1
	n, err := strconv.ParseInt(owner[number:], 10, 64)
	if err != nil {
		return owner
	}
	return owner[:number] + strconv.FormatInt(max(n, -n)%owners, 10)
}

// Owners returns the Owner of each field.
func Owners(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = Owner(f)
	}
	return out
}

// OwnerField returns CLIENT:OWNER for a process/thread. Owner is its inverse.
func OwnerField(thread string) string { return strings.Replace(thread, "/", ":", 1) }

// ReadQueue fills in the waiters of a lock and their deadlines. The server keeps the
// waiters in the list queue. It keeps the deadlines in the sorted set deadlines, in Unix
// milliseconds. owner returns the owner of a member, as Owner does.
func ReadQueue(s *model.LockState, keys simredis.Keyspace, queue, deadlines string, owner func(member string) string) {
	for _, member := range keys.List(queue) {
		s.Queue = append(s.Queue, owner(member))
	}
	for member, score := range keys.SortedSet(deadlines) {
		if s.Deadlines == nil {
			s.Deadlines = map[string]int64{}
		}
		s.Deadlines[owner(member)] = int64(score) - keys.StartMs()
	}
}

// OneKey returns the key of a lock that has one key, which is its name.
func OneKey(lock string) []string { return []string{lock} }

// OneString returns the protocol of a lock that keeps its owner in one string. The lock
// sends SET, DEL, and scripts whose first key is the lock and whose last argument is
// the owner. OneKey returns its key.
func OneString(scripts map[string]model.Role) *Protocol {
	return &Protocol{
		Scripts: scripts,
		Parties: func(_ model.Role, keys, argv, _ []string) (about, owners []string) {
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
	}
}
