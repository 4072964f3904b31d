package redis

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"lockstep/sim"
)

// library is a library of functions.
type library struct {
	name, code string
	in         *interpreter
	functions  []*function // by name
}

// function is a function of a library.
type function struct {
	name, description string
	flags             []string
	callback          *lua.LFunction
	of                *library
}

// functionFlags are the flags that a function can have.
var functionFlags = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// function answers FUNCTION.
func (s *Server) function(peer *mserver.Peer, args []string) {
	if len(args) == 0 {
		peer.WriteError("ERR wrong number of arguments for 'function' command")
		return
	}
	rest := args[1:]
	switch sub := strings.ToUpper(args[0]); sub {
	case "LOAD":
		s.loadLibrary(peer, rest)
	case "DELETE":
		i := s.libraryAt(rest[0])
		if i < 0 {
			peer.WriteError("ERR Library not found")
			return
		}
		s.libraries = slices.Delete(slices.Clone(s.libraries), i, i+1)
		peer.WriteOK()
	case "FLUSH":
		switch {
		case len(rest) > 1:
			peer.WriteError("ERR unknown subcommand or wrong number of arguments for '" + args[0] + "'. Try FUNCTION HELP.")
		case len(rest) == 1 && !strings.EqualFold(rest[0], "SYNC") && !strings.EqualFold(rest[0], "ASYNC"):
			peer.WriteError("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		default:
			s.libraries = nil
			peer.WriteOK()
		}
	case "LIST":
		s.listLibraries(peer, rest)
	case "KILL":
		peer.WriteError("NOTBUSY No scripts in execution right now.")
	case "STATS":
		functions := 0
		for _, l := range s.libraries {
			functions += len(l.functions)
		}
		peer.Block(func(w *mserver.Writer) {
			w.WriteMapLen(2)
			w.WriteBulk("running_script")
			w.WriteNull()
			w.WriteBulk("engines")
			w.WriteMapLen(1)
			w.WriteBulk("LUA")
			w.WriteMapLen(2)
			w.WriteBulk("libraries_count")
			w.WriteInt(len(s.libraries))
			w.WriteBulk("functions_count")
			w.WriteInt(functions)
		})
	}
}

// libraryAt returns the index of a library; -1 if there is none of that name.
func (s *Server) libraryAt(name string) int {
	return slices.IndexFunc(s.libraries, func(l *library) bool { return l.name == name })
}

// functionOf returns a function; nil if there is none of that name.
func (s *Server) functionOf(name string) *function {
	for _, l := range s.libraries {
		for _, f := range l.functions {
			if strings.EqualFold(f.name, name) {
				return f
			}
		}
	}
	return nil
}

// listLibraries answers FUNCTION LIST. Redis lists in no order, and this server by name.
func (s *Server) listLibraries(peer *mserver.Peer, args []string) {
	pattern, code := "*", false
	for i := 0; i < len(args); i++ {
		switch {
		case strings.EqualFold(args[i], "WITHCODE"):
			code = true
		case strings.EqualFold(args[i], "LIBRARYNAME") && i+1 == len(args):
			peer.WriteError("ERR library name argument was not given")
			return
		case strings.EqualFold(args[i], "LIBRARYNAME"):
			i++
			pattern = args[i]
		default:
			peer.WriteError("ERR Unknown argument " + args[i])
			return
		}
	}
	list := slices.DeleteFunc(slices.Clone(s.libraries), func(l *library) bool { return !sim.Match(pattern, l.name) })
	peer.Block(func(w *mserver.Writer) {
		w.WriteLen(len(list))
		for _, l := range list {
			fields := 3
			if code {
				fields++
			}
			w.WriteMapLen(fields)
			for _, word := range []string{"library_name", l.name, "engine", "LUA", "functions"} {
				w.WriteBulk(word)
			}
			w.WriteLen(len(l.functions))
			for _, f := range l.functions {
				w.WriteMapLen(3)
				w.WriteBulk("name")
				w.WriteBulk(f.name)
				w.WriteBulk("description")
				if f.description == "" {
					w.WriteNull()
				} else {
					w.WriteBulk(f.description)
				}
				w.WriteBulk("flags")
				w.WriteSetLen(len(f.flags))
				for _, flag := range f.flags {
					w.WriteInline(flag)
				}
			}
			if code {
				w.WriteBulk("library_code")
				w.WriteBulk(l.code)
			}
		}
	})
}

// loadLibrary answers FUNCTION LOAD.
func (s *Server) loadLibrary(peer *mserver.Peer, args []string) {
	code, options, replace := args[len(args)-1], args[:len(args)-1], false
	for _, option := range options {
		if !strings.EqualFold(option, "REPLACE") {
			peer.WriteError("ERR Unknown option given: " + option)
			return
		}
		replace = true
	}
	l, err := newLibrary(code)
	switch {
	case err != nil:
		peer.WriteError("ERR " + err.Error())
		return
	case s.libraryAt(l.name) >= 0 && !replace:
		peer.WriteError("ERR Library '" + l.name + "' already exists")
		return
	}
	if err := l.load(); err != nil {
		peer.WriteError("ERR " + err.Error())
		return
	}
	list := slices.DeleteFunc(slices.Clone(s.libraries), func(o *library) bool { return o.name == l.name })
	for _, f := range l.functions {
		for _, o := range list {
			if slices.ContainsFunc(o.functions, func(of *function) bool { return strings.EqualFold(of.name, f.name) }) {
				peer.WriteError("ERR Function " + f.name + " already exists")
				return
			}
		}
	}
	s.libraries = append(list, l)
	slices.SortFunc(s.libraries, func(a, b *library) int { return cmp.Compare(a.name, b.name) })
	peer.WriteBulk(l.name)
}

// refusal is the text with which redis-server refuses a library.
type refusal string

func (r refusal) Error() string { return string(r) }

// newLibrary reads the first line of a library.
func newLibrary(code string) (*library, error) {
	head, ok := strings.CutPrefix(code, "#!")
	if !ok {
		return nil, refusal("Missing library metadata")
	}
	head, _, ok = strings.Cut(head, "\n")
	if !ok {
		return nil, refusal("Invalid library metadata")
	}
	l := &library{code: code}
	words := strings.Fields(head)
	for i, word := range words {
		name, given := strings.CutPrefix(word, "name=")
		switch {
		case i == 0:
		case !given:
			return nil, refusal("Invalid metadata value given: " + word)
		case l.name != "":
			return nil, refusal("Invalid metadata value, name argument was given multiple times")
		default:
			l.name = name
		}
	}
	switch {
	case l.name == "":
		return nil, refusal("Library name was not given")
	case !isFunctionName(l.name):
		return nil, errFunctionName
	case !strings.EqualFold(words[0], "lua"):
		return nil, refusal("Engine '" + words[0] + "' not found")
	}
	return l, nil
}

var errFunctionName = refusal("Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")

// isFunctionName reports whether a text can be the name of a library or of a function.
func isFunctionName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// load runs the code of a library, which registers its functions.
func (l *library) load() error {
	_, body, _ := strings.Cut(l.code, "\n")
	chunk, err := parse.Parse(strings.NewReader("\n"+body), "user_function")
	if err != nil {
		return refusal("Error compiling function: " + err.Error())
	}
	code, err := lua.Compile(chunk, "user_function")
	if err != nil {
		return refusal("Error compiling function: " + err.Error())
	}
	l.in = newInterpreter()
	defer l.in.protect(l.register)()
	state := l.in.l
	state.Push(state.NewFunctionFromProto(code))
	if err := state.PCall(0, 0, nil); err != nil {
		return refusal("Error registering functions: ERR " + textOf(err))
	}
	if len(l.functions) == 0 {
		return refusal("No functions registered")
	}
	slices.SortFunc(l.functions, func(a, b *function) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// textOf returns the text that a script gave to error, or the text of an error in it.
func textOf(err error) string {
	var api *lua.ApiError
	if errors.As(err, &api) && api.Object != nil {
		if t, ok := api.Object.(*lua.LTable); ok {
			return t.RawGetString("err").String()
		}
		return api.Object.String()
	}
	return err.Error()
}

// protect makes the globals read-only. Until the function that it returns is called, there is only the table redis with
// register, as in a library that is being loaded.
func (in *interpreter) protect(register lua.LGFunction) (loaded func()) {
	global, all := in.l.G.Global, in.l.NewTable()
	global.ForEach(func(k, v lua.LValue) { all.RawSet(k, v) })
	all.ForEach(func(k, _ lua.LValue) { global.RawSet(k, lua.LNil) })
	for _, name := range []string{"_G", "collectgarbage", "dofile", "load", "loadfile", "loadstring", "module", "newproxy", "print", "require", "_printregs"} {
		all.RawSetString(name, lua.LNil)
	}
	early, redis := in.l.NewTable(), in.l.NewTable()
	for _, name := range []string{"log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		redis.RawSetString(name, all.RawGetString("redis").(*lua.LTable).RawGetString(name))
	}
	redis.RawSetString("register_function", in.l.NewFunction(register))
	early.RawSetString("redis", in.readOnly(redis))
	early.RawSetString("server", early.RawGetString("redis"))
	all.RawSetString("redis", in.readOnly(all.RawGetString("redis").(*lua.LTable)))
	all.RawSetString("server", all.RawGetString("redis"))
	from := early
	global.Metatable = in.readOnlyMeta(func() *lua.LTable { return from })
	return func() { from = all }
}

// readOnlyMeta returns the metatable of a table that has the fields of another one, and that nobody can change.
func (in *interpreter) readOnlyMeta(of func() *lua.LTable) *lua.LTable {
	meta := in.l.NewTable()
	meta.RawSetString("__index", in.l.NewFunction(func(l *lua.LState) int {
		v := of().RawGet(l.Get(2))
		if v == lua.LNil {
			l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.Get(2).String())
		}
		l.Push(v)
		return 1
	}))
	meta.RawSetString("__newindex", in.l.NewFunction(modified))
	return meta
}

// readOnly returns a table with the fields of another one, which nobody can change.
func (in *interpreter) readOnly(of *lua.LTable) *lua.LTable {
	t := in.l.NewTable()
	t.Metatable = in.readOnlyMeta(func() *lua.LTable { return of })
	return t
}

// modified refuses a change of a global table.
func modified(l *lua.LState) int {
	l.RaiseError("Attempt to modify a readonly table")
	return 0
}

// register implements redis.register_function.
func (l *library) register(state *lua.LState) int {
	f := &function{of: l}
	fail := func(text string) { state.Error(lua.LString(text), 0) }
	fields := map[string]lua.LValue{}
	switch table, ok := state.Get(1).(*lua.LTable); {
	case state.GetTop() == 1 && !ok:
		fail("calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).")
	case state.GetTop() == 1:
		table.ForEach(func(k, v lua.LValue) { fields[k.String()] = v })
	case state.GetTop() == 2:
		fields["function_name"], fields["callback"] = state.Get(1), state.Get(2)
	default:
		fail("wrong number of arguments to redis.register_function")
	}
	for field := range fields {
		if !slices.Contains([]string{"function_name", "callback", "description", "flags"}, field) {
			fail("unknown argument given to redis.register_function")
		}
	}
	name, named := fields["function_name"].(lua.LString)
	callback, calls := fields["callback"].(*lua.LFunction)
	description, _ := fields["description"].(lua.LString)
	f.name, f.callback, f.description = string(name), callback, string(description)
	if list, ok := fields["flags"].(*lua.LTable); ok {
		list.ForEach(func(_, flag lua.LValue) { f.flags = append(f.flags, flag.String()) })
	}
	switch {
	case !named:
		fail("redis.register_function must get a function name argument")
	case !calls:
		fail("redis.register_function must get a callback argument")
	case !isFunctionName(f.name):
		fail(errFunctionName.Error())
	case slices.ContainsFunc(f.flags, func(flag string) bool { return !slices.Contains(functionFlags, flag) }):
		fail("unknown flag given")
	case slices.ContainsFunc(l.functions, func(o *function) bool { return strings.EqualFold(o.name, f.name) }):
		fail("Function already exists in the library")
	}
	l.functions = append(l.functions, f)
	return 0
}

// callFunction answers FCALL and FCALL_RO.
func (s *Server) callFunction(peer *mserver.Peer, cmd string, args []string) {
	if len(args) < 2 {
		peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	}
	f := s.functionOf(args[0])
	n, err := strconv.Atoi(args[1])
	rest := args[2:]
	switch {
	case f == nil:
		peer.WriteError("ERR Function not found")
	case err != nil:
		peer.WriteError("ERR Bad number of keys provided")
	case n > len(rest):
		peer.WriteError("ERR Number of keys can't be greater than number of args")
	case n < 0:
		peer.WriteError("ERR Number of keys can't be negative")
	case cmd == "FCALL_RO" && !slices.Contains(f.flags, "no-writes"):
		peer.WriteError("ERR Can not execute a script with write flag using *_ro command.")
	default:
		f.call(s, peer, rest[:n], rest[n:])
	}
}

// call calls a function, and writes its reply.
func (f *function) call(s *Server, peer *mserver.Peer, keys, argv []string) {
	in := f.of.in
	in.server, in.function = s, f
	in.peers = [2]*mserver.Peer{mserver.NewPeer(in.w), mserver.NewPeer(in.w)}
	in.peers[0].Ctx, in.peers[1].Ctx = peer.Ctx, peer.Ctx
	s.running = &script{sha: f.name, function: true}
	defer func() { in.server, in.function, s.running = nil, nil, nil }()
	top := in.l.GetTop()
	defer in.l.SetTop(top)
	in.l.Push(f.callback)
	in.l.Push(in.list(keys))
	in.l.Push(in.list(argv))
	if err := in.l.PCall(2, 1, nil); err != nil {
		text := textOf(err)
		if line, ok := lineOf(text); ok {
			text = "ERR " + text + f.place(line)
		}
		peer.WriteError(text)
		return
	}
	writeLua(peer, in.l.Get(-1))
}

// mayNot reports whether the function has promised not to write, and a command writes.
func (f *function) mayNot(s *Server, cmd string) bool {
	server := s.m.Server()
	return slices.Contains(f.flags, "no-writes") && server.IsRegisteredCommand(cmd) && !server.IsReadOnlyCommand(cmd)
}

// fail returns the error of a command to the function that called it.
func (f *function) fail(l *lua.LState, protected int, text string) int {
	if protected == 0 {
		line, _ := lineOf(l.Where(1))
		text += f.place(line)
	}
	t := f.of.in.oneField("err", text)
	if protected == 0 {
		l.Error(t, 0)
	}
	l.Push(t)
	return 1
}

// place returns the end of the message of an error in a line of the library.
func (f *function) place(line string) string {
	return " script: " + f.name + ", on @user_function:" + line + "."
}

// lineOf returns the number of the line with which the text of an error begins.
func lineOf(text string) (line string, ok bool) {
	rest, ok := strings.CutPrefix(text, "user_function:")
	line, _, found := strings.Cut(rest, ":")
	return line, ok && found
}
