package redis

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/proto"

	"lockstep/model"
	"lockstep/sim"
)

var errNoCommand = errors.New("a client wrote what is no command")

// AtOnce is sim.Parts.AtOnce. It answers HELLO as a server that knows only RESP2. The answer
// comes at once because go-redis waits for it while it holds a mutex, and simulated time cannot see
// a wait for a mutex. A HELLO that asks for RESP3 goes through the world like any other command.
func (*Server) AtOnce(written []byte) (reply, rest []byte) {
	if !isHello(written) {
		return nil, written
	}
	words, after, ok := readCommand(string(written))
	if !ok || asksRESP3(words) {
		return nil, written
	}
	return []byte("-ERR unknown command 'hello'\r\n"), written[len(written)-len(after):]
}

// isHello reports whether b begins with a HELLO.
func isHello(b []byte) bool {
	_, rest, ok := bytes.Cut(b, []byte("\r\n"))
	return ok && len(rest) >= 11 && bytes.EqualFold(rest[:11], []byte("$5\r\nhello\r\n"))
}

// asksRESP3 reports whether a command is a HELLO that asks for RESP3.
func asksRESP3(words []string) bool {
	return len(words) > 1 && strings.EqualFold(words[0], "HELLO") && words[1] == "3"
}

// Refusal is sim.Parts.Refusal.
func (*Server) Refusal(text string) []byte { return []byte("-" + text + "\r\n") }

// Decode implements sim.Server.
func (*Server) Decode(text string) (r sim.Request, rest string, err error) {
	words, rest, ok := readCommand(text)
	if !ok { // the command is unfinished, or text is not a command
		raw, err := proto.Read(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return sim.Request{}, text, sim.ErrUnfinished
		}
		rest = text[len(raw):]
		if words, err = proto.ReadStrings(raw); err != nil || len(words) == 0 {
			return sim.Request{}, rest, errNoCommand
		}
	}
	return RequestOf(words), rest, nil
}

// RequestOf returns the facts about a command that a record needs.
func RequestOf(words []string) sim.Request {
	name := strings.ToUpper(words[0])
	k := kinds[name]
	r := sim.Request{Name: name, Words: words, Shown: words[1:], Marks: marks(name, k)}
	r.Greets = !k.is(reads|writes|deletes) && greets(name, words)
	switch {
	case name == "HELLO":
		r.Streams = asksRESP3(words)
	case name == "MULTI":
		r.Gathers = true
	case name == "EVAL" || name == "EVALSHA":
		r.Program, r.Counts = scriptDigest(words), 2
		r.Shown = words[min(2, len(words)):] // without the script
	case name == "FCALL" || name == "FCALL_RO":
		r.Counts = 2
	case name == "SCRIPT":
		r.Shown = words[1:min(2, len(words))]
	case name == "PUBLISH" || name == "SPUBLISH":
		r.Channels = words[1:min(2, len(words))]
	case name == "WAIT" || k.is(blocks):
		r.Blocks = true
	case strings.HasSuffix(name, "SUBSCRIBE"):
		r.Channels = words[1:]
		r.Unordered = true
		r.Listens = model.ListenStop
		if !strings.Contains(name, "UNSUB") {
			r.Listens, r.Stays = model.ListenStart, true
		}
	}
	return r
}

// scriptDigest returns the digest of the script that EVAL or EVALSHA runs, as EVALSHA has it, in lower case.
func scriptDigest(words []string) string {
	script := strings.Join(words[1:min(2, len(words))], "")
	if strings.EqualFold(words[0], "EVALSHA") {
		return strings.ToLower(script)
	}
	return fmt.Sprintf("%x", sha1.Sum([]byte(script)))
}

// greets reports whether a command is one by which a client gets to know a server, or loads a script.
func greets(name string, words []string) bool {
	switch name {
	case "HELLO", "AUTH", "SELECT", "CLIENT", "INFO", "COMMAND", "CLUSTER", "READONLY":
		return true
	case "SCRIPT":
		return len(words) > 1 && strings.EqualFold(words[1], "LOAD")
	}
	return false
}

// marks reports whether a command may make its connection differ from others, or depends on an
// earlier command there. WAIT does not count. It depends on the command before it, but the two come
// together.
func marks(name string, k kind) bool {
	return !k.is(reads|writes|deletes|blocks) && !slices.Contains([]string{
		"EVAL", "EVALSHA", "SCRIPT", "WAIT", "INFO", "EXISTS", "PUBLISH", "SPUBLISH", "PING", "ECHO", "TIME",
		"DELEX", "DELIFEQ", "DIGEST", "FCALL", "FCALL_RO", "FUNCTION", "CONFIG",
	}, name)
}

// readCommand reads a command as clients write it: an array of bulk strings.
func readCommand(text string) (words []string, rest string, ok bool) {
	n, rest, ok := header(text, '*')
	if !ok || n == 0 || n > len(text) {
		return nil, "", false
	}
	words = make([]string, n)
	for i := range words {
		var size int
		if size, rest, ok = header(rest, '$'); !ok || size > len(rest)-2 || rest[size:size+2] != "\r\n" {
			return nil, "", false
		}
		words[i], rest = rest[:size], rest[size+2:]
	}
	return words, rest, true
}

// readPush reads a push message of RESP3 and returns its channel.
func readPush(text string) (channel, rest string, ok bool) {
	n, rest, ok := header(text, '>')
	if !ok {
		return "", "", false
	}
	words := make([]string, n)
	for i := range words {
		words[i], rest = parseReply(rest)
	}
	switch {
	case n == 2 && words[0] == "invalidate":
		return invalidations, rest, true
	case n >= 3:
		return words[n-2], rest, true
	}
	return "", "", false
}

// header reads the line before an array or a bulk string, and returns the size in it.
func header(text string, kind byte) (size int, rest string, ok bool) {
	line, rest, ok := strings.Cut(text, "\r\n")
	if !ok || len(line) < 2 || line[0] != kind {
		return 0, "", false
	}
	for _, digit := range []byte(line[1:]) {
		if digit < '0' || digit > '9' || size > 1<<30 {
			return 0, "", false
		}
		size = 10*size + int(digit-'0')
	}
	return size, rest, true
}

// ReplyOf returns a RESP reply together with its form in the record. The form is nil, a
// number, text, (error) text, or a list in brackets.
func ReplyOf(b []byte) sim.Reply {
	r := sim.Reply{Bytes: b}
	r.Shown, _ = parseReply(string(b))
	switch {
	case bytes.HasPrefix(b, []byte("-NOSCRIPT")):
		r.Answer = model.NotRun
	case bytes.HasPrefix(b, []byte("-")):
		r.Answer = model.Refused
	}
	return r
}

func parseReply(s string) (shown, rest string) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" {
		return "", ""
	}
	switch body := line[1:]; line[0] {
	case '-':
		return "(error) " + body, rest
	case '$':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			return "nil", rest
		}
		return rest[:n], rest[n+2:]
	case '_':
		return "nil", rest
	case '*', '>', '~', '%':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			return "nil", rest
		}
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i], rest = parseReply(rest)
		}
		return "[" + strings.Join(parts, " ") + "]", rest
	default:
		return body, rest
	}
}
