package server

import "testing"

// A segment of whole commands is read, and no other: a part of one, a second packet, or a command that no client of a
// lock sends.
func TestSaysReadsWholeCommands(t *testing.T) {
	packet := func(number byte, payload string) string {
		return string([]byte{byte(len(payload)), byte(len(payload) >> 8), 0, number}) + payload
	}
	query := packet(0, "\x03SELECT GET_LOCK('orders', 1)")
	for segment, want := range map[string]string{
		query:                                 "SELECT GET_LOCK('orders', 1)",
		packet(0, "\x0e") + packet(0, "\x01"): "PING; QUIT",
		packet(0, "\x16SELECT ?"):             "PREPARE SELECT ?",
		packet(0, "\x17\x02\x01\x00\x00\x00\x01\x00\x00\x00"): "EXECUTE statement 258",
		packet(0, "\x19\x01\x00\x00\x00"):                     "CLOSE statement 1",
		query[:len(query)-1]:                                  "",
		query[3:]:                                             "",
		packet(1, "\x03SELECT 1"):                             "",
		packet(0, "\x1f"):                                     "",
		packet(0, "\x17\x02"):                                 "",
		packet(0, ""):                                         "",
		"":                                                    "",
	} {
		if got := commands(segment); got != want {
			t.Errorf("%q: %q, want %q", segment, got, want)
		}
	}
}

// The first segment of each connection is a login.
func TestSaysReadsALogin(t *testing.T) {
	const ping = "\x01\x00\x00\x00\x0e"
	for range 2 {
		read := says()
		for i, want := range []string{"LOGIN", "PING", "PING"} {
			if got := read(ping); got != want {
				t.Errorf("segment %d: %q, want %q", i, got, want)
			}
		}
	}
}

func TestOnlyAStatementWithATimeoutWaits(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT GET_LOCK('orders', 1)":      "orders",
		"select get_lock( 'orders' , 0.5 )": "orders",
		"DO GET_LOCK('orders', -1)":         "orders",
		"SELECT GET_LOCK('orders', 0)":      "",
		"SELECT GET_LOCK('orders',0 )":      "",
		"SELECT RELEASE_LOCK('orders')":     "",
	} {
		if got := waitsFor(query); got != want {
			t.Errorf("%s waits for %q, want %q", query, got, want)
		}
	}
}
