package redis

import (
	"slices"
	"sort"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/sim"
)

// shards maps each sharded channel to its subscribers. Sharded channels have a namespace
// of their own. miniredis keeps the channels of PUBLISH.
type shards map[string][]*conn

// names returns the sorted names of the channels that have a subscriber.
func (s shards) names() []string {
	var names []string
	for name := range s {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// leave ends a subscription.
func (s shards) leave(c *conn, channel string) {
	c.shards = slices.DeleteFunc(c.shards, func(ch string) bool { return ch == channel })
	s[channel] = slices.DeleteFunc(s[channel], func(o *conn) bool { return o == c })
	if len(s[channel]) == 0 {
		delete(s, channel)
	}
}

// publish writes a message to the subscribers and returns their number.
func (s shards) publish(channel, text string) int {
	for _, c := range s[channel] {
		c.peer.Block(func(w *mserver.Writer) {
			w.WritePushLen(3)
			w.WriteBulk("smessage")
			w.WriteBulk(channel)
			w.WriteBulk(text)
		})
		c.peer.Flush()
	}
	return len(s[channel])
}

// subscribe answers SSUBSCRIBE.
func (s shards) subscribe(c *conn, channels []string) {
	if len(channels) == 0 {
		c.peer.WriteError("ERR wrong number of arguments for 'ssubscribe' command")
		return
	}
	for _, ch := range channels {
		if !slices.Contains(c.shards, ch) {
			c.shards = append(c.shards, ch)
			s[ch] = append(s[ch], c)
		}
		confirm(c, "ssubscribe", ch)
	}
}

// unsubscribe answers SUNSUBSCRIBE. Without channels it ends every subscription.
func (s shards) unsubscribe(c *conn, channels []string) {
	if len(channels) == 0 {
		channels = slices.Clone(c.shards)
	}
	for _, ch := range channels {
		s.leave(c, ch)
		confirm(c, "sunsubscribe", ch)
	}
	if len(channels) == 0 {
		c.peer.Block(func(w *mserver.Writer) {
			w.WritePushLen(3)
			w.WriteBulk("sunsubscribe")
			w.WriteNull()
			w.WriteInt(0)
		})
	}
}

// confirm writes that a subscription began or ended, and the number of subscriptions.
func confirm(c *conn, what, channel string) {
	c.peer.Block(func(w *mserver.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(what)
		w.WriteBulk(channel)
		w.WriteInt(len(c.shards))
	})
}

// listening are the commands that a connection with subscriptions may send.
var listening = []string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "PING", "QUIT", "RESET"}

// onlyListens refuses commands that a connection with subscriptions may not send. It also answers
// PING, since such a connection gets the answer as a message. It reports whether it answered the
// command.
func onlyListens(c *conn, cmd string, args []string) bool {
	switch {
	case len(c.shards) == 0 && !c.subscribes, c.peer.Resp3:
		return false
	case !slices.Contains(listening, cmd):
		c.peer.WriteError("ERR Can't execute '" + strings.ToLower(cmd) + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
		return true
	case cmd == "PING" && len(args) < 2:
		c.peer.Block(func(w *mserver.Writer) {
			w.WriteLen(2)
			w.WriteBulk("pong")
			w.WriteBulk(strings.Join(args, ""))
		})
		return true
	}
	return false
}

// asked answers PUBSUB SHARDCHANNELS and PUBSUB SHARDNUMSUB. It reports false for other
// subcommands.
func (s shards) asked(peer *mserver.Peer, args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch sub, rest := strings.ToUpper(args[0]), args[1:]; {
	case sub == "SHARDCHANNELS" && len(rest) < 2:
		names := s.names()
		if len(rest) == 1 {
			names = slices.DeleteFunc(names, func(ch string) bool { return !sim.Match(rest[0], ch) })
		}
		peer.WriteStrings(names)
	case sub == "SHARDNUMSUB":
		peer.Block(func(w *mserver.Writer) {
			w.WriteLen(2 * len(rest))
			for _, ch := range rest {
				w.WriteBulk(ch)
				w.WriteInt(len(s[ch]))
			}
		})
	default:
		return false
	}
	return true
}
