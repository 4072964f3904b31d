package server

import "testing"

// A segment of whole commands is read, and no other.
func TestSaysReadsWholeCommands(t *testing.T) {
	const publish = "HPUB $KV.locks.orders _INBOX.1 12 14\r\nNATS/1.0\r\n\r\nme\r\n"
	for segment, want := range map[string]string{
		publish:                                   "HPUB $KV.locks.orders",
		"PUB a 3\r\n\r\n!\r\nPING\r\n":            "PUB a; PING",
		"SUB _INBOX.1.* 1\r\nUNSUB 1\r\n":         "SUB _INBOX.1.*; UNSUB 1",
		"CONNECT {\"verbose\":false}\r\nPING\r\n": "CONNECT; PING",
		publish[:len(publish)-1]:                  "",
		publish[5:]:                               "",
		"PUB a x\r\n":                             "",
		"PUB a -5\r\n":                            "",
		"PUB\r\n":                                 "",
		"HELLO a\r\n":                             "",
		"":                                        "",
	} {
		if got := says(segment); got != want {
			t.Errorf("%q: %q, want %q", segment, got, want)
		}
	}
}
