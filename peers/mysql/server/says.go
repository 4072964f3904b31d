package server

import (
	"fmt"
	"strings"
)

// The commands of the protocol of MySQL that clients of locks send.
const (
	comQuit    = 0x01
	comQuery   = 0x03
	comPing    = 0x0e
	comPrepare = 0x16
	comExecute = 0x17
	comClose   = 0x19
)

// says returns a reader of the segments that a client sends on a connection, of which the first is the login.
func says() func(segment string) string {
	begun := false
	return func(segment string) string {
		first := !begun
		if begun = true; first {
			return "LOGIN"
		}
		return commands(segment)
	}
}

// commands returns the commands in a segment, each with its statement; "" if the segment is not whole or has something
// else.
func commands(segment string) string {
	var all []string
	for segment != "" {
		if len(segment) < 5 {
			return ""
		}
		size, number := int(segment[0])|int(segment[1])<<8|int(segment[2])<<16, segment[3]
		if number != 0 || size == 0 || len(segment) < 4+size {
			return ""
		}
		command, rest := segment[4], segment[5:4+size]
		segment = segment[4+size:]
		switch command {
		case comQuit:
			all = append(all, "QUIT")
		case comPing:
			all = append(all, "PING")
		case comQuery:
			all = append(all, rest)
		case comPrepare:
			all = append(all, "PREPARE "+rest)
		case comExecute, comClose:
			if len(rest) < 4 {
				return ""
			}
			name := map[byte]string{comExecute: "EXECUTE", comClose: "CLOSE"}[command]
			all = append(all, fmt.Sprintf("%s statement %d", name, uint32(rest[0])|uint32(rest[1])<<8|uint32(rest[2])<<16|uint32(rest[3])<<24))
		default:
			return ""
		}
	}
	return strings.Join(all, "; ")
}
