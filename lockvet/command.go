package lockvet

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// A verb is what a command does to a key, whatever the client calls it.
type verb string

const (
	setnx  verb = "SETNX" // SET with NX, too
	get    verb = "GET"
	getset verb = "GETSET"
	del    verb = "DEL"
	expire verb = "EXPIRE"
	script verb = "script"
	watch  verb = "WATCH"
	incr   verb = "INCR"
)

// verbs are the verbs of the names that clients, and the wrappers around them, give to commands.
var verbs = map[string]verb{
	"setnx": setnx, "setnxex": setnx, "setifnotexist": setnx, "setifnotexists": setnx,
	"get": get, "getset": getset,
	"del": del, "delete": del, "unlink": del, "getdel": del,
	"expire": expire, "pexpire": expire, "expireat": expire, "pexpireat": expire,
	"watch": watch, "incr": incr, "incrby": incr, "decr": incr, "decrby": incr, "eval": script, "evalsha": script,
}

// lease says whether a command that takes a lock gives it a lease.
type lease int

const (
	unknown lease = iota
	given
	never
)

// A command is a call that sends one command to Redis or Memcached.
type command struct {
	verb     verb
	keys     []key
	value    ast.Expr // of setnx; nil if it is not seen
	lease    lease    // of setnx
	carried  []key    // fields that the function of setnx gives its key to
	pipeline bool     // the command is sent together with others
	fails    bool     // setnx of a key that is there gives an error
	call     *ast.CallExpr
	at       inspector.Cursor
}

// hasKey reports whether the command is for a key that another command names.
func (c *command) hasKey(k key) bool {
	return slices.ContainsFunc(c.keys, func(own key) bool { return own.id == k.id })
}

// isFor reports whether the command is for the key that a claim takes, or for a field that carries it.
func (c *command) isFor(claim *command) bool {
	return c.hasKey(claim.keys[0]) || slices.ContainsFunc(claim.carried, c.hasKey)
}

// ofRedis are the paths of packages that send commands whose name is an argument.
var ofRedis = regexp.MustCompile(`redis|redigo|mediocregopher/radix`)

// collect keeps a call if it sends a command.
func (r *reading) collect(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	fn := callee(r.TypesInfo, call)
	if fn == nil || fn.Pkg() == nil {
		return
	}
	c := &command{call: call, at: at}
	args := call.Args
	for len(args) > 0 && named(r.TypesInfo.TypeOf(args[0])) == "context.Context" {
		args = args[1:]
	}
	path, name := fn.Pkg().Path(), fn.Name()
	c.fails = strings.HasSuffix(path, "gomemcache/memcache")
	var names []ast.Expr // of keys
	switch {
	case strings.HasSuffix(path, "rueidis/internal/cmds"):
		if name != "Build" {
			return
		}
		names = r.built(c)
	case strings.HasSuffix(path, "gomemcache/memcache"):
		names = r.memcached(c, name, args)
	case slices.Contains([]string{"Do", "Send", "DoContext", "DoWithTimeout", "Cmd", "FlatCmd"}, name) && ofRedis.MatchString(path):
		for len(args) > 0 && !r.isText(args[0]) {
			args = args[1:]
		}
		if len(args) > 1 && !call.Ellipsis.IsValid() {
			names = r.written(c, r.text(args[0]), args[1:])
		}
	case slices.Contains([]string{"Eval", "EvalSha", "EvalRO", "Run", "RunRO", "Exec", "Do", "DoContext", "ScriptRun"}, name):
		names = r.scripted(c, path, args)
	case r.isClient(fn, call):
		names = r.method(c, path, strings.ToLower(strings.TrimSuffix(name, "Ctx")), args, fn)
	}
	if c.verb == "" {
		return
	}
	for _, e := range names {
		k := r.keyOf(e, at)
		if k.free {
			k.id += " of " + r.scope(at)
		}
		c.keys = append(c.keys, k)
		if c.verb == setnx {
			c.carried = append(c.carried, r.carriers(e, at)...)
		}
	}
	if c.verb == script {
		if blind := c.blindly(r.lua(c)); blind != nil {
			r.commands = append(r.commands, blind...)
			return
		}
	}
	r.commands = append(r.commands, c)
}

// scope names the methods or functions whose parameters may be one key: those of a type, and those of a
// package that have no receiver.
func (r *reading) scope(at inspector.Cursor) string {
	fn := declared(at)
	if fn == nil || fn.Recv == nil || len(fn.Recv.List) == 0 {
		return "the package"
	}
	return named(r.TypesInfo.TypeOf(fn.Recv.List[0].Type))
}

// isClient reports whether a method belongs to a client: a type, or a package, that can both take a key
// that is free and delete a key.
func (r *reading) isClient(fn *types.Func, call *ast.CallExpr) bool {
	has := func(names ...string) bool {
		for _, name := range names {
			if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && r.TypesInfo.Selections[sel] != nil {
				recv := r.TypesInfo.Selections[sel].Recv()
				if obj, _, _ := types.LookupFieldOrMethod(recv, true, fn.Pkg(), name); obj != nil {
					return true
				}
			} else if fn.Signature().Recv() == nil && fn.Pkg().Scope().Lookup(name) != nil {
				return true
			}
		}
		return false
	}
	return has("SetNX", "SetNx", "Setnx", "SETNX", "SetnxEx", "SetIfNotExist", "SetIfNotExists") && has("Del", "Delete", "DEL")
}

// method reads a command that is a method or a function of its own.
func (r *reading) method(c *command, path, name string, args []ast.Expr, fn *types.Func) []ast.Expr {
	if sel, ok := ast.Unparen(c.call.Fun).(*ast.SelectorExpr); ok {
		c.pipeline = strings.Contains(named(r.TypesInfo.TypeOf(sel.X)), ".Pipe")
	}
	v := verbs[name]
	if name == "set" && len(args) == 3 && !r.isZero(args[2]) {
		v = expire // it overwrites the value and the lease
	}
	if name == "setargs" && len(args) == 3 {
		options := fields(args[2])
		if options["Mode"] == nil || r.text(options["Mode"]) != "NX" {
			return nil
		}
		v, c.lease, c.fails = setnx, never, true
		if options["TTL"] != nil || options["ExpireAt"] != nil {
			c.lease = given
		}
	}
	if v == "" || v == script || v != watch && len(args) == 0 {
		return nil
	}
	c.verb = v
	switch v {
	case watch:
		return nil
	case del:
		return args
	case setnx:
		if len(args) < 2 {
			c.verb = ""
			return nil
		}
		c.value = args[1]
		switch zero := len(args) > 2 && r.isZero(args[2]); {
		case name == "setargs":
		case zero, len(args) == 2 && ofRedis.MatchString(path):
			c.lease = never
		case len(args) > 2:
			c.lease = given
		}
	}
	return args[:1]
}

// written reads a command whose name is an argument.
func (r *reading) written(c *command, name string, args []ast.Expr) []ast.Expr {
	c.verb = verbs[strings.ToLower(name)]
	switch strings.ToUpper(name) {
	case "SET":
		c.fails = true
		for _, arg := range args[1:] {
			switch strings.ToUpper(r.text(arg)) {
			case "NX":
				c.verb = setnx
			case "EX", "PX":
				c.lease = given
			}
		}
		if c.verb == "" && c.lease == given {
			c.verb = expire // it overwrites the value and the lease
		}
		if c.verb == setnx && c.lease == unknown {
			c.lease = never
		}
	case "SETNX":
		c.lease = never
	case "DEL", "UNLINK":
		return args
	case "EVAL", "EVALSHA":
		return args[min(2, len(args)):] // behind the script and the number of keys
	}
	if c.verb == setnx && len(args) > 1 {
		c.value = args[1]
	}
	return args[:1]
}

// built reads a command of rueidis, which is a chain of calls that ends in Build.
func (r *reading) built(c *command) []ast.Expr {
	var names, values []ast.Expr
	var options []string
	e := ast.Expr(c.call)
	for {
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return nil
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		switch sel.Sel.Name {
		case "Key":
			names = append(names, call.Args...)
		case "Value":
			values = append(values, call.Args...)
		}
		if inner, ok := sel.X.(*ast.CallExpr); ok {
			if s, ok := inner.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "B" {
				c.verb = verbs[strings.ToLower(sel.Sel.Name)]
				if sel.Sel.Name == "Set" && slices.Contains(options, "Nx") {
					c.verb = setnx
				}
				break
			}
		}
		options = append(options, sel.Sel.Name)
		e = sel.X
	}
	if c.verb == setnx {
		c.lease = never
		for _, option := range options {
			if slices.Contains([]string{"Ex", "ExSeconds", "Px", "PxMilliseconds", "Exat", "ExatTimestamp", "Pxat"}, option) {
				c.lease = given
			}
		}
		if len(values) == 1 {
			c.value = values[0]
		}
	}
	return names
}

// memcached reads a command for Memcached, whose Add is what SETNX is in Redis.
func (r *reading) memcached(c *command, name string, args []ast.Expr) []ast.Expr {
	switch {
	case len(args) != 1:
	case name == "Delete":
		c.verb = del
		return args
	case name == "Get":
		c.verb = get
		return args
	case name == "Add":
		item := fields(args[0])
		if item["Key"] == nil {
			return nil
		}
		c.verb, c.lease, c.value = setnx, never, item["Value"]
		if item["Expiration"] != nil && !r.isZero(item["Expiration"]) {
			c.lease = given
		}
		return []ast.Expr{item["Key"]}
	}
	return nil
}

// fields returns the values of the fields of a literal of a struct, or of a pointer to one.
func fields(e ast.Expr) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	e = ast.Unparen(e)
	if address, ok := e.(*ast.UnaryExpr); ok {
		e = address.X
	}
	if literal, ok := e.(*ast.CompositeLit); ok {
		for _, e := range literal.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				found[lastName(pair.Key)] = pair.Value
			}
		}
	}
	return found
}

// scripted reads the run of a script, whose keys stand in a literal, or follow the connection of redigo.
func (r *reading) scripted(c *command, path string, args []ast.Expr) []ast.Expr {
	for _, arg := range args {
		literal, ok := ast.Unparen(arg).(*ast.CompositeLit)
		if !ok {
			continue
		}
		if t := r.TypesInfo.TypeOf(literal); t != nil && t.String() == "[]string" {
			c.verb = script
			return literal.Elts
		}
	}
	if strings.HasSuffix(path, "redigo/redis") && len(args) > 1 {
		c.verb = script
		return args[1:]
	}
	return nil
}

func (r *reading) isText(e ast.Expr) bool {
	v := r.TypesInfo.Types[e].Value
	return v != nil && v.Kind() == constant.String
}

// text returns the constant string that an expression is, "" if it is none.
func (r *reading) text(e ast.Expr) string {
	if !r.isText(e) {
		return ""
	}
	return constant.StringVal(r.TypesInfo.Types[e].Value)
}

func (r *reading) isZero(e ast.Expr) bool {
	v := r.TypesInfo.Types[e].Value
	return v != nil && v.Kind() == constant.Int && constant.Sign(v) == 0
}
