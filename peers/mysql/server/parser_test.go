package server

import (
	"slices"
	"testing"

	"github.com/dolthub/go-mysql-server/sql"
)

// A statement that locks rows or tables is noted, wherever it does so, and no other.
func TestAStatementThatLocksRowsIsNoted(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT owner FROM locks FOR UPDATE":                              "the statement SELECT owner FROM locks FOR UPDATE",
		"SELECT owner FROM locks WHERE name = 'a' FOR UPDATE SKIP LOCKED": "the statement SELECT owner FROM locks WHERE name = ? FOR UPDATE SKIP LOCKED",
		"SELECT owner FROM locks FOR UPDATE NOWAIT":                       "the statement SELECT owner FROM locks FOR UPDATE NOWAIT", // the engine does not know it
		"SELECT owner FROM locks LOCK IN SHARE MODE":                      "the statement SELECT owner FROM locks LOCK IN SHARE MODE",
		"SELECT owner FROM (SELECT owner FROM locks FOR UPDATE) AS mine":  "the statement SELECT owner FROM (SELECT owner FROM locks FOR UPDATE) AS mine",
		"SELECT owner FROM locks WHERE name = 'FOR UPDATE'":               "",
		"LOCK TABLES locks WRITE":                                         "the statement LOCK TABLES locks WRITE",
		"UNLOCK TABLES":                                                   "",
		"UPDATE locks SET owner = 'a'":                                    "",
	} {
		s := &Server{}
		_, _ = parser{sql.NewMysqlParser(), s}.ParseSimple(query)
		if met := s.Unsimulated(); !slices.Equal(met, []string{want}) && (want != "" || len(met) > 0) {
			t.Errorf("%s: %q; want %q", query, met, want)
		}
	}
}
