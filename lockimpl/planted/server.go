package planted

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// Server puts the bug between a lock's client and its server. scripts maps the text of
// each script of the lock to its purpose, and edited is the result of Edit.Apply.
func (b *Bug) Server(rdb redis.UniversalClient, scripts, edited map[string]string) redis.UniversalClient {
	if b.Conn != nil {
		rdb.AddHook(dials{b.Conn()})
		return rdb
	}
	if b.Edit == nil && b.Send == nil {
		return rdb
	}
	s := &server{UniversalClient: rdb, edited: map[string]string{}, kinds: map[string]string{}}
	for text, kind := range scripts {
		s.kinds[text], s.kinds[SHA(text)] = kind, kind
	}
	for text, instead := range edited {
		s.edited[text], s.edited[SHA(text)] = instead, SHA(instead)
	}
	s.send = s.pass
	if b.Send != nil {
		s.send = b.Send(s.send)
	}
	return s
}

// Lock puts the bug between a lock and its caller.
func (b *Bug) Lock(l lockimpl.Lock) lockimpl.Lock {
	l = numbered{l}
	if b.Call == nil {
		return l
	}
	return b.Call(l)
}

// SHA is the name under which a server keeps a script.
func SHA(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// server changes the scripts of a lock on their way to the server.
type server struct {
	redis.UniversalClient
	kinds  map[string]string // by text and SHA
	edited map[string]string // by text and SHA, the text or SHA that is sent instead
	send   Sender
}

func (s *server) instead(textOrSHA string) string {
	if other, ok := s.edited[textOrSHA]; ok {
		return other
	}
	return textOrSHA
}

// pass sends a command as it is.
func (s *server) pass(ctx context.Context, c Command) (any, error) {
	if c.text != "" {
		return s.UniversalClient.Eval(ctx, c.text, c.Keys, c.Args...).Result()
	}
	return s.UniversalClient.EvalSha(ctx, c.sha, c.Keys, c.Args...).Result()
}

func (s *server) run(ctx context.Context, c Command) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	if attempts, ok := ctx.Value(attemptsKey{}).(*attempts); ok {
		c.Attempt = attempts.next(c.Script)
	}
	val, err := s.send(ctx, c)
	cmd.SetVal(val)
	cmd.SetErr(err)
	return cmd
}

// Eval implements redis.Scripter.
func (s *server) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, Command{Script: s.kinds[script], Keys: keys, Args: args, text: s.instead(script)})
}

// EvalSha implements redis.Scripter.
func (s *server) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, Command{Script: s.kinds[sha], Keys: keys, Args: args, sha: s.instead(sha)})
}

// ScriptLoad implements redis.Scripter.
func (s *server) ScriptLoad(ctx context.Context, script string) *redis.StringCmd {
	return s.UniversalClient.ScriptLoad(ctx, s.instead(script))
}

// dials wraps every connection of a client.
type dials struct{ wrap func(net.Conn) net.Conn }

// DialHook implements redis.Hook.
func (d dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return d.wrap(c), nil
	}
}

// ProcessHook implements redis.Hook.
func (d dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (d dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
