package redis

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	luajson "github.com/alicebob/miniredis/v2/gopher-json"
	mserver "github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// miniredis makes a Lua state for every script that it runs. The state costs many times as much as
// most scripts do. Scripts that can leave nothing behind in a state run here instead, on pooled
// states, with the same answers. miniredis still runs the other scripts, the scripts of
// transactions, and calls that end in an error before the script begins.

// script is a script that a client sent to a server, or that a Config holds.
type script struct {
	text, sha string
	code      *lua.FunctionProto // nil if miniredis runs the script
	function  bool               // it is a function, and sha is its name
}

// texts and hashes hold a *script for each script that this program has met. texts is
// keyed by the text, and hashes by the SHA-1.
var texts, hashes sync.Map

func scriptOf(text string) *script {
	if s, ok := texts.Load(text); ok {
		return s.(*script)
	}
	sum := sha1.Sum([]byte(text))
	s := &script{text: text, sha: hex.EncodeToString(sum[:])}
	if chunk, err := parse.Parse(strings.NewReader(text), "<string>"); err == nil {
		if code, err := lua.Compile(chunk, ""); err == nil && leavesNothing(code) {
			// The flag would make Lua build a table of the arguments for each
			// call. A chunk is called without arguments and has no name for
			// that table.
			code.IsVarArg &^= lua.VarArgNeedsArg
			s.code = code
		}
	}
	texts.Store(text, s)
	hashes.Store(s.sha, s)
	return s
}

// safeGlobals are the globals of a pooled state that a script may use without limits.
var safeGlobals = strings.Fields(`
KEYS ARGV assert error ipairs next pairs pcall rawequal rawget select tonumber tostring type unpack xpcall`)

// safeFields are the fields that a script may take out of the global tables of a
// pooled state: functions that leave nothing behind, and constants.
var safeFields = map[string][]string{
	"redis":  strings.Fields("call error_reply log pcall sha1hex status_reply LOG_DEBUG LOG_NOTICE LOG_VERBOSE LOG_WARNING"),
	"string": strings.Fields("byte char find format gmatch gsub len lower match rep reverse sub upper"),
	"table":  strings.Fields("concat getn insert maxn remove sort"),
	"math": strings.Fields(`
abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min mod modf pi pow rad sin sinh
sqrt tan tanh`),
	"cjson": {"decode", "encode"},
}

// leavesNothing reports whether code can leave nothing behind in the state that runs
// it. Such code sets no global and reads only safe ones. It takes safe fields out of
// global tables by name and never has such a table as a value, so that it cannot
// write to one.
func leavesNothing(code *lua.FunctionProto) bool {
	for i, word := range code.Code {
		switch in := instruction(word); in.op() {
		case lua.OP_SETGLOBAL:
			return false
		case lua.OP_GETGLOBAL:
			name := code.Constants[in.bx()].String()
			if slices.Contains(safeGlobals, name) {
				continue
			}
			// The field is taken next, and takes the table's place in its
			// register. Its name is a constant, or loaded just before.
			get := instruction(code.Code[i+1])
			key := get.c() - isConstant
			if get.op() == lua.OP_LOADK {
				load := get
				get, key = instruction(code.Code[i+2]), load.bx()
				if load.a() == in.a() || load.a() != get.c() {
					return false
				}
			}
			if get.op() != lua.OP_GETTABLEKS || get.b() != in.a() || get.a() != in.a() || key < 0 ||
				!slices.Contains(safeFields[name], code.Constants[key].String()) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(code.FunctionPrototypes, func(p *lua.FunctionProto) bool { return !leavesNothing(p) })
}

// instruction is an instruction of Lua 5.1 in the layout of gopher-lua.
type instruction uint32

func (in instruction) op() int { return int(in >> 26) }
func (in instruction) a() int  { return int(in >> 18 & 0xff) }
func (in instruction) b() int  { return int(in & 0x1ff) }
func (in instruction) c() int  { return int(in >> 9 & 0x1ff) }
func (in instruction) bx() int { return int(in & 0x3ffff) }

// isConstant is added to an operand that is the index of a constant.
const isConstant = 1 << 8

// eval runs the EVAL or EVALSHA of a client on a pooled state. It reports false when
// miniredis must run it.
func (s *Server) eval(peer *mserver.Peer, cmd string, args []string) bool {
	if c := s.executing.conn; s.noShortcuts || c.subscribes || len(args) < 2 {
		return false
	}
	var sc *script
	if cmd == "EVAL" {
		sc = scriptOf(args[0])
	} else if known, ok := hashes.Load(args[0]); ok && s.hasScript(args[0]) {
		sc = known.(*script)
	}
	n, err := strconv.Atoi(args[1])
	if sc == nil || sc.code == nil || err != nil || n < 0 || n > len(args)-2 {
		return false
	}
	in := takeInterpreter()
	if !in.run(s, peer, sc, args[2:2+n], args[2+n:]) {
		return true // the state is dropped, with everything that the error left in it
	}
	in.giveBack()
	if cmd == "EVAL" && !s.cached[sc.sha] {
		s.aside("SCRIPT", "LOAD", sc.text)
		s.cached[sc.sha] = true
	}
	return true
}

// load gives miniredis the scripts that were in the cache from the start. miniredis
// parses each script, so load runs only when miniredis must look for a script.
func (s *Server) load() {
	texts := slices.Sorted(slices.Values(s.unloaded))
	s.unloaded = nil
	for _, text := range texts {
		s.aside("SCRIPT", "LOAD", text)
	}
}

// hasScript reports whether a script is in the cache.
func (s *Server) hasScript(sha string) bool {
	if !s.cached[sha] {
		s.cached[sha] = strings.HasSuffix(s.aside("SCRIPT", "EXISTS", sha), ":1\r\n")
	}
	return s.cached[sha]
}

// aside executes a command that no client sent. It may do so while the server executes a
// command of a client.
func (s *Server) aside(words ...string) string {
	executing := s.executing
	s.executing = nil
	defer func() { s.executing = executing }()
	return s.run(words...)
}

// notFromScripts are the commands that miniredis refuses to scripts, with the numbers of
// arguments that they take. With another number, miniredis reports the wrong number
// instead.
var notFromScripts = map[string]struct{ min, max int }{
	"AUTH": {1, 2}, "EVAL": {2, many}, "EVALSHA": {2, many}, "EVAL_RO": {2, many}, "EVALSHA_RO": {2, many}, "EXEC": {0, 0},
	"MULTI": {0, 0}, "PSUBSCRIBE": {1, many}, "PUNSUBSCRIBE": {0, many}, "SCRIPT": {1, many}, "SUBSCRIBE": {1, many},
	"UNSUBSCRIBE": {0, many}, "WATCH": {1, many},
}

const many = 1 << 30

// refused refuses a command that the running script may not execute. It reports whether it did.
func (s *Server) refused(peer *mserver.Peer, cmd string, args []string) bool {
	if s.running == nil {
		return false
	}
	takes, ok := notFromScripts[cmd]
	if !ok || len(args) < takes.min || len(args) > takes.max {
		return false
	}
	if s.running.function {
		peer.WriteError("ERR This Redis command is not allowed from script")
		return true
	}
	peer.WriteError("This Redis command is not allowed from script script: " + s.running.sha + ", &c")
	return true
}

// interpreter is a Lua state that runs one script after another.
type interpreter struct {
	l   *lua.LState
	out bytes.Buffer // the reply of a command
	w   *bufio.Writer

	// The following fields belong to the running script.
	server   *Server
	sha      string
	function *function        // nil if a script runs
	peers    [2]*mserver.Peer // the connections to miniredis, for call and for pcall
}

var idle struct {
	sync.Mutex
	list []*interpreter
}

func takeInterpreter() *interpreter {
	idle.Lock()
	defer idle.Unlock()
	if n := len(idle.list); n > 0 {
		in := idle.list[n-1]
		idle.list = idle.list[:n-1]
		return in
	}
	return newInterpreter()
}

func (in *interpreter) giveBack() {
	in.server, in.sha, in.peers = nil, "", [2]*mserver.Peer{}
	idle.Lock()
	defer idle.Unlock()
	idle.list = append(idle.list, in)
}

func newInterpreter() *interpreter {
	in := &interpreter{l: lua.NewState(lua.Options{SkipOpenLibs: true})}
	in.w = bufio.NewWriter(&in.out)
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		open(in.l)
	}
	luajson.Loader(in.l)
	in.l.SetGlobal("cjson", in.l.Get(-1))
	in.l.SetTop(0)
	redis := in.l.NewTable()
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		redis.RawSetString(name, lua.LNumber(i))
	}
	in.l.SetFuncs(redis, map[string]lua.LGFunction{
		"call":         func(l *lua.LState) int { return in.call(l, 0) },
		"pcall":        func(l *lua.LState) int { return in.call(l, 1) },
		"error_reply":  errorReply,
		"log":          log,
		"status_reply": statusReply,
		"sha1hex":      sha1hex,
	})
	in.l.SetGlobal("redis", redis)
	return in
}

// run runs a script and writes its reply. It reports false if the script ended in an
// error.
func (in *interpreter) run(s *Server, peer *mserver.Peer, sc *script, keys, argv []string) bool {
	in.server, in.sha, s.running = s, sc.sha, sc
	in.peers = [2]*mserver.Peer{mserver.NewPeer(in.w), mserver.NewPeer(in.w)}
	defer func() { s.running = nil }()
	in.l.SetGlobal("KEYS", in.list(keys))
	in.l.SetGlobal("ARGV", in.list(argv))
	in.l.Push(in.l.NewFunctionFromProto(sc.code))
	if err := in.l.PCall(0, lua.MultRet, nil); err != nil {
		// miniredis uses the whole message as a format.
		peer.WriteError(fmt.Sprintf("ERR Error compiling script (new function): "+err.Error(), []any{}...))
		return false
	}
	writeLua(peer, in.l.Get(1))
	in.l.SetTop(0)
	return true
}

func (in *interpreter) list(words []string) *lua.LTable {
	t := in.l.CreateTable(len(words), 0)
	for _, word := range words {
		t.Append(lua.LString(word))
	}
	return t
}

// call implements redis.call, and redis.pcall if protected is 1.
func (in *interpreter) call(l *lua.LState, protected int) int {
	n := l.GetTop()
	if n == 0 {
		l.Error(lua.LString("Please specify at least one argument for this redis lib call script: "+in.sha+", &c."), 1)
	}
	words := make([]string, n)
	for i := range words {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			words[i] = string(v)
		case lua.LNumber:
			if n := int64(v); lua.LNumber(n) == v {
				words[i] = strconv.FormatInt(n, 10)
			} else {
				words[i] = v.String()
			}
		default:
			if in.function != nil {
				return in.function.fail(l, 0, "ERR Lua redis lib command arguments must be strings or integers")
			}
			l.Error(lua.LString("Lua redis lib command arguments must be strings or integers script: "+in.sha+", &c."), 1)
		}
	}
	if name, ok := upperCase[words[0]]; ok {
		words[0] = name
	}
	if in.function != nil && in.function.mayNot(in.server, words[0]) {
		return in.function.fail(l, protected, "ERR Write commands are not allowed from read-only scripts.")
	}
	in.out.Reset()
	peer := in.peers[protected]
	peer.Resp3, peer.SwitchResp3, peer.ClientName = false, nil, "" // only the context of a connection outlives a command
	in.server.m.Server().Dispatch(peer, words)
	peer.Flush()
	v, failed, _ := in.value(in.out.Bytes())
	switch unknown := strings.Contains(failed, "ERR unknown command"); {
	case v != nil:
		l.Push(v)
		return 1
	case in.function != nil && unknown:
		return in.function.fail(l, protected, "ERR Unknown Redis command called from script")
	case in.function != nil:
		return in.function.fail(l, protected, failed)
	case protected == 0 && unknown:
		failed = "Unknown Redis command called from script script: " + in.sha + ", &c."
	case unknown:
		failed = "ERR Unknown Redis command called from script"
	}
	if protected == 0 {
		l.Error(lua.LString(failed), 1)
	}
	l.Push(in.oneField("err", failed))
	return 1
}

// upperCase has the names of common commands in upper case by their names in lower case.
// miniredis would make a new string each time.
var upperCase = func() map[string]string {
	names := map[string]string{}
	for name, k := range kinds {
		if k.is(reads | writes | deletes | keeps) {
			names[strings.ToLower(name)] = name
		}
	}
	return names
}()

// oneField returns a table with one field.
func (in *interpreter) oneField(field, text string) *lua.LTable {
	t := in.l.CreateTable(0, 1)
	t.RawSetString(field, lua.LString(text))
	return t
}

// value reads a reply. If the reply holds an error anywhere, value returns nil and the
// text of the error.
func (in *interpreter) value(b []byte) (v lua.LValue, failed string, rest []byte) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return nil, "EOF", nil
	}
	if len(line) == 0 {
		return nil, "invalid request", nil
	}
	kind, body := line[0], line[1:]
	switch kind {
	case '+':
		return in.oneField("ok", string(body)), "", rest
	case '-':
		return nil, string(body), rest
	}
	n, err := strconv.Atoi(string(body))
	switch {
	case err != nil:
	case kind == ':':
		return lua.LNumber(n), "", rest
	case (kind == '$' || kind == '*') && n < 0:
		return lua.LFalse, "", rest
	case kind == '$':
		return lua.LString(rest[:n]), "", rest[n+2:]
	case kind == '*':
		t := in.l.CreateTable(n, 0)
		for range n {
			if v, failed, rest = in.value(rest); v == nil {
				return nil, failed, rest
			}
			t.Append(v)
		}
		return t, "", rest
	}
	return nil, "invalid request", nil
}

// writeLua writes the value that a script returned.
func writeLua(peer *mserver.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LBool:
		if v {
			peer.WriteInt(1)
		} else {
			peer.WriteNull()
		}
	case lua.LNumber:
		peer.WriteInt(int(v))
	case lua.LString:
		peer.WriteBulk(string(v))
	case *lua.LTable:
		if err := v.RawGetString("err"); err != lua.LNil {
			peer.WriteError(err.String())
			return
		}
		if ok := v.RawGetString("ok"); ok != lua.LNil {
			peer.WriteInline(ok.String())
			return
		}
		n := 0
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		peer.WriteLen(n)
		for i := range n {
			writeLua(peer, v.RawGetInt(i+1))
		}
	default: // nil, and a function, as in Redis
		peer.WriteNull()
	}
}

func errorReply(l *lua.LState) int {
	text, ok := l.Get(1).(lua.LString)
	if !ok {
		l.Error(lua.LString("wrong number or type of arguments"), 1)
	}
	code, rest, more := strings.Cut(string(text), " ")
	code = strings.TrimPrefix(code, "-")
	if more {
		text = lua.LString(code + " " + rest)
	} else {
		text = lua.LString("ERR " + code)
	}
	t := l.NewTable()
	t.RawSetString("err", text)
	l.Push(t)
	return 1
}

func statusReply(l *lua.LState) int {
	text, ok := l.Get(1).(lua.LString)
	if !ok {
		l.Error(lua.LString("wrong number or type of arguments"), 1)
	}
	t := l.NewTable()
	t.RawSetString("ok", text)
	l.Push(t)
	return 1
}

// log checks its arguments and logs nothing.
func log(l *lua.LState) int {
	l.CheckInt(1)
	l.CheckString(2)
	return 0
}

func sha1hex(l *lua.LState) int {
	if l.GetTop() != 1 {
		l.Error(lua.LString("wrong number of arguments"), 1)
	}
	sum := sha1.Sum([]byte(lua.LVAsString(l.Get(1))))
	l.Push(lua.LString(hex.EncodeToString(sum[:])))
	return 1
}
