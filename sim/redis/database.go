package redis

import (
	"strconv"

	mserver "github.com/alicebob/miniredis/v2/server"
)

// databases is the number of databases of a server as it comes.
const databases = 16

// choose answers SELECT, and reports whether it did. All that is simulated is in one database, whose number the first
// command with data decides. It is database 0 of miniredis.
func (s *Server) choose(peer *mserver.Peer, direct bool, args []string) bool {
	if len(args) != 1 {
		return false
	}
	n, err := strconv.Atoi(args[0])
	c := s.executing.conn
	switch {
	case err != nil:
		return false
	case n < 0 || n >= databases:
		peer.WriteError("ERR DB index is out of range")
	case !direct && n != c.database:
		peer.WriteError(s.unsimulated("SELECT in a script"))
	default:
		c.database = n
		peer.WriteOK()
	}
	return true
}

// elsewhere reports whether a command is about another database than that of the data.
func (s *Server) elsewhere(c *conn, k kind, cmd string) bool {
	if s.chosen == nil && k.is(reads|writes|deletes|blocks) {
		s.chosen = new(int)
		*s.chosen = c.database
	}
	return s.chosen != nil && c.database != *s.chosen && (!k.is(keeps) || cmd == "EXISTS") && !greets(cmd, nil)
}
