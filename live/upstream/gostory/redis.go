package gostory

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ServeRedis starts redis-server, which keeps no data.
func ServeRedis(t *testing.T) Server {
	return StartProgram(t, "redis-server", "redis-server", func(_, port string) *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	})
}

// Resp is the protocol of Redis.
var Resp = Protocol{
	Request: func(in *bufio.Reader) (raw []byte, name string, err error) {
		raw, words, err := respValue(in)
		if len(words) > 0 {
			name = strings.ToUpper(words[0])
		}
		if slices.Contains([]string{"PING", "HELLO", "CLIENT", "AUTH", "SELECT"}, name) {
			name = Idle
		}
		return raw, name, err
	},
	Reply: func(in *bufio.Reader) (raw []byte, name string, err error) {
		raw, _, err = respValue(in)
		if len(raw) > 0 && raw[0] == '>' {
			name = Push
		}
		return raw, name, err
	},
}

// respValue reads a value, with the texts in it.
func respValue(in *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	raw, text := []byte(line), strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, nil
		}
		body := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(in, body)
		return append(raw, body...), []string{string(body[:n])}, err
	case '*', '~', '>', '%', '|':
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			more, inner, err := respValue(in)
			raw, words = append(raw, more...), append(words, inner...)
			if err != nil {
				return raw, words, err
			}
		}
		return raw, words, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, []string{text}, nil
	}
	return raw, nil, fmt.Errorf("%q is not of the protocol of Redis", line)
}

// Refuse answers a request with an error instead of carrying it.
func Refuse(text string) func(m *Message) bool {
	return func(m *Message) bool {
		m.link.toClient <- &Message{raw: []byte("-" + text + "\r\n"), at: m.at}
		return false
	}
}
