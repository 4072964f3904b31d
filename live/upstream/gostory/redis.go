package gostory

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// redisServer is a redis-server of its own.
type redisServer struct {
	t    *testing.T
	port string
	cmd  *exec.Cmd
}

// ServeRedis starts redis-server, which must be on the PATH.
func ServeRedis(t *testing.T, n int) (all []Server) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		_ = l.Close()
		r := &redisServer{t: t, port: port}
		r.start()
		t.Cleanup(r.end)
		all = append(all, r)
	}
	return all
}

func (r *redisServer) start() {
	r.cmd = exec.Command("redis-server", "--port", r.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	Await(r.t, r.Addr())
}

func (r *redisServer) end() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

func (r *redisServer) Addr() string { return "127.0.0.1:" + r.port }

// Restart starts an empty server; it keeps nothing.
func (r *redisServer) Restart(bool) {
	r.end()
	r.start()
}

// Resp takes the protocol of Redis apart.
var Resp = &Split{
	Request: func(in *bufio.Reader) ([]byte, string, error) {
		raw, words, _, err := respValue(in)
		command := ""
		if len(words) > 0 {
			command = strings.ToUpper(words[0])
		}
		return raw, command, err
	},
	Reply: func(in *bufio.Reader) ([]byte, bool, error) {
		raw, _, push, err := respValue(in)
		return raw, !push, err
	},
	Idle: []string{"PING", "HELLO", "CLIENT", "AUTH", "SELECT"},
}

// respValue reads a value, with the texts in it.
func respValue(in *bufio.Reader) (raw []byte, words []string, push bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, nil, false, err
	}
	raw = []byte(line)
	text := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, false, nil
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(in, body)
		return append(raw, body...), []string{string(body[:n])}, false, err
	case '*', '~', '>', '%', '|':
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			more, inner, _, err := respValue(in)
			raw, words = append(raw, more...), append(words, inner...)
			if err != nil {
				return raw, words, false, err
			}
		}
		return raw, words, line[0] == '>', nil
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, []string{text}, false, nil
	}
	return raw, nil, false, fmt.Errorf("%q is not of the protocol of Redis", line)
}
