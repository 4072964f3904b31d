package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadRequest reads a request: an array of bulk strings, or a line of words.
func ReadRequest(in *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	raw = append(raw, line...)
	if line[0] != '*' {
		words = strings.Fields(string(line))
		if len(words) == 0 {
			return nil, nil, fmt.Errorf("an empty command")
		}
		return raw, words, nil
	}
	n, err := count(line)
	if err != nil {
		return nil, nil, err
	}
	if n < 1 {
		return nil, nil, fmt.Errorf("a command of %d words", n)
	}
	for range n {
		head, err := in.ReadBytes('\n')
		if err != nil {
			return nil, nil, err
		}
		size, err := count(head)
		if err != nil {
			return nil, nil, err
		}
		if size < 0 {
			return nil, nil, fmt.Errorf("a word of %d bytes", size)
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, head...), body...)
		words = append(words, string(body[:size]))
	}
	return raw, words, nil
}

func count(line []byte) (int, error) { return strconv.Atoi(string(bytes.TrimSpace(line[1:]))) }

// ReadReply reads one value of RESP2 or RESP3 as it is on the wire.
func ReadReply(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	raw := append([]byte(nil), line...)
	values := 0
	switch line[0] {
	case '$', '=', '!':
		n, err := count(line)
		if err != nil || n < 0 {
			return raw, err
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(in, body)
		return append(raw, body...), err
	case '*', '~', '>':
		values, err = count(line)
	case '%', '|':
		values, err = count(line)
		values *= 2
	}
	for i := 0; i < values && err == nil; i++ {
		var inner []byte
		inner, err = ReadReply(in)
		raw = append(raw, inner...)
	}
	return raw, err
}

// kinds has the kinds of pushes, each with the index of the channel in the push.
var kinds = map[string]int{"message": 1, "smessage": 1, "pmessage": 2}

// invalidations is the channel of an invalidation, which RESP3 pushes without a channel. A client
// of RESP2 listens to a channel of this name, which the simulated server uses too.
const invalidations = "__redis__:invalidate"

// pushed reports whether a value answers no request, and returns its channel. A reply to SUBSCRIBE
// answers one, although RESP3 marks it as a push.
func pushed(raw []byte) (channel string, ok bool) {
	if raw[0] != '*' && raw[0] != '>' {
		return "", false
	}
	in := bufio.NewReader(bytes.NewReader(raw))
	_, _ = in.ReadBytes('\n')
	var words [3]string
	for i := range words {
		value, err := ReadReply(in)
		if err != nil || value[0] != '$' && value[0] != '+' {
			break
		}
		if _, body, ok := bytes.Cut(value, []byte("\r\n")); ok && value[0] == '$' {
			words[i] = string(bytes.TrimSuffix(body, []byte("\r\n")))
		} else {
			words[i] = string(bytes.TrimSpace(value[1:]))
		}
	}
	if words[0] == "invalidate" && raw[0] == '>' {
		return invalidations, true
	}
	at, known := kinds[words[0]]
	if kind, _ := listening(words[0]); kind != "" || !known && raw[0] == '*' {
		return "", false
	}
	return words[at], true
}
