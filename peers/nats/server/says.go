package server

import (
	"strconv"
	"strings"
)

// says returns the commands in a segment, each with its subject; "" if the segment begins or ends within a command.
func says(segment string) string {
	var all []string
	for segment != "" {
		line, rest, whole := strings.Cut(segment, "\r\n")
		words := strings.Fields(line)
		if !whole || len(words) == 0 {
			return ""
		}
		said := ""
		segment = rest
		switch verb := strings.ToUpper(words[0]); {
		case verb == "PING", verb == "PONG", verb == "CONNECT":
			said = verb
		case len(words) < 2:
			return ""
		case verb == "SUB", verb == "UNSUB":
			said = verb + " " + words[1]
		case verb == "PUB", verb == "HPUB":
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil || size < 0 || len(rest) < size+2 {
				return ""
			}
			said, segment = verb+" "+words[1], rest[size+2:] // behind the payload
		default:
			return ""
		}
		all = append(all, said)
	}
	return strings.Join(all, "; ")
}
