package redis

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/sim"
)

// functionCommands ask for all commands of functions, and for each error.
var functionCommands = [][]string{
	{"FUNCTION", "FLUSH"},
	{"FUNCTION", "LOAD", "return 1"},
	{"FUNCTION", "LOAD", "#!lua name=x"},
	{"FUNCTION", "LOAD", "#!lua\nreturn"},
	{"FUNCTION", "LOAD", "#!js name=x\nreturn"},
	{"FUNCTION", "LOAD", "#!lua name=x foo=1\nreturn"},
	{"FUNCTION", "LOAD", "#!lua name=x\nreturn 1"},
	{"FUNCTION", "LOAD", "#!lua name=x-y\nredis.register_function(\"f\",function() end)"},
	{"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function(\"f-g\",function() end)"},
	{"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function(\"f\",function(k,a) return {k[1],a[1],#k,#a} end)"},
	{"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function(\"f\",function() end)"},
	{"FUNCTION", "LOAD", "#!lua name=y\nredis.register_function(\"f\",function() end)"},
	{"FUNCTION", "LOAD", "REPLACE", "#!lua name=x\nredis.register_function{function_name=\"f\",callback=function(k,a) return redis.call(\"set\",k[1],a[1]) end} redis.register_function{function_name=\"g\",callback=function(k,a) return redis.call(\"get\",k[1]) end,flags={\"no-writes\"}} redis.register_function(\"h\",function() return redis.call(\"nosuch\") end) redis.register_function(\"e\",function() error(\"oops\") end) redis.register_function(\"n\",function() return redis.error_reply(\"MY no\") end) redis.register_function{function_name=\"w\",callback=function(k,a) return redis.call(\"set\",k[1],a[1]) end,flags={\"no-writes\"}} redis.register_function(\"gl\",function() foo=1 end) redis.register_function(\"gg\",function() return foo end) redis.register_function(\"pc\",function() return redis.pcall(\"nosuch\") end)  redis.register_function(\"wt\",function() return redis.call(\"lpush\",\"k\",1) end) redis.register_function(\"m\",function() return {1,nil,3} end) redis.register_function(\"st\",function() return redis.status_reply(\"FINE\") end) redis.register_function(\"keysg\",function() return KEYS end)"},
	{"FCALL", "f", "1", "k", "v"},
	{"FCALL", "g", "1", "k"},
	{"FCALL_RO", "g", "1", "k"},
	{"FCALL_RO", "f", "1", "k", "v"},
	{"FCALL", "nosuch", "0"},
	{"FCALL", "f", "x"},
	{"FCALL", "f", "-1"},
	{"FCALL", "f", "2", "k"},
	{"FCALL", "f"},
	{"FCALL", "h", "0"},
	{"FCALL", "e", "0"},
	{"FCALL", "n", "0"},
	{"FCALL", "w", "1", "k", "v"},
	{"FCALL", "gl", "0"},
	{"FCALL", "gg", "0"},
	{"FCALL", "pc", "0"},
	{"FCALL", "wt", "0"},
	{"FCALL", "m", "0"},
	{"FCALL", "st", "0"},
	{"FCALL", "keysg", "0"},
	{"FCALL", "F", "0"},
	{"FUNCTION", "LIST"},
	{"FUNCTION", "LIST", "LIBRARYNAME", "x*", "WITHCODE"},
	{"FUNCTION", "LIST", "LIBRARYNAME", "z"},
	{"FUNCTION", "LIST", "FOO"},
	{"FUNCTION", "LIST", "LIBRARYNAME"},
	{"FUNCTION", "DELETE", "nosuch"},
	{"FUNCTION", "STATS"},
	{"FUNCTION", "KILL"},
	{"FUNCTION", "LOAD", "NOPE", "#!lua name=z\nreturn"},
	{"FUNCTION", "LOAD", "REPLACE", "REPLACE", "#!lua name=z\nreturn"},
	{"FUNCTION", "LOAD", "REPLACE"},
	{"FUNCTION", "LOAD"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.call(\"set\",\"a\",1)"},
	{"FUNCTION", "LOAD", "#!lua name=z\nerror(\"bad\")"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.register_function(\"a\")"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.register_function{function_name=\"a\"}"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.register_function{function_name=\"a\",callback=function() end,foo=1}"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.register_function{function_name=\"a\",callback=function() end,flags={\"foo\"}}"},
	{"FUNCTION", "LOAD", "#!lua name=z\nredis.register_function(\"a\",function() end) redis.register_function(\"a\",function() end)"},
	{"FUNCTION", "LOAD", "#!lua name=z\nx=1"},
	{"FUNCTION", "LOAD", "#!lua name=z\nreturn x"},
	{"FUNCTION", "DELETE", "x"},
	{"FCALL", "f", "1", "k", "v"},
	{"FUNCTION", "FLUSH", "FOO"},
	{"FUNCTION", "FLUSH", "SYNC"},
	{"FUNCTION", "FLUSH", "ASYNC", "x"},
	{"FUNCTION"},
	{"DEL", "k"},
}

// Functions answer as those of Redis, but for what its Lua compiler says of code that it cannot read.
func TestFunctionsAnswerAsRedisDoes(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	c, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want, err := ask(c, functionCommands)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := asked(t, sim.NewHost(t), functionCommands)
	lines := func(reply string) string { // sorted, since Redis lists functions in no order
		list := strings.Split(reply, "\r\n")
		slices.Sort(list)
		return strings.Join(list, "|")
	}
	for i, words := range functionCommands {
		if lines(got[i]) != lines(want[i]) {
			t.Errorf("%q\nhere:  %q\nRedis: %q", words, got[i], want[i])
		}
	}
}

// counting is a library with a function that counts its calls in a variable of its own, and sets a key.
const counting = "#!lua name=counting\nlocal n = 0\nredis.register_function('count', function(keys) n = n + 1 return redis.call('set', keys[1], n) end)"

// A library lives as long as the data of its server.
func TestWhatALibrarySurvives(t *testing.T) {
	fault := func(server model.ServerFault, keep bool, lose int) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultServer, Server: server, KeepData: keep, LoseLast: lose, At: 500 * ms}
	}
	for name, c := range map[string]struct {
		fault model.FaultSpec
		want  string
	}{
		"a restart with its data":            {fault(model.ServerRestart, true, 0), "OK"},
		"a restart without its data":         {fault(model.ServerRestart, false, 0), "ERR Function not found"},
		"a flush of the scripts":             {fault(model.ServerFlushScripts, false, 0), "OK"},
		"a failover":                         {fault(model.ServerFailover, false, 0), "OK"},
		"a failover that loses its creation": {fault(model.ServerFailover, false, 1), "ERR Function not found"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			newStage(c.fault).does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				if err := client.FunctionLoad(ctx, counting).Err(); err != nil {
					t.Error(err)
				}
				th.At(time.Second)
				client.Ping(ctx) // finds the connection dead
				text, err := client.FCall(ctx, "count", []string{"k"}).Text()
				if got = text; err != nil {
					got = err.Error()
				}
			}).run(sim.NewHost(t))
			equal(t, "answer", got, c.want)
		})
	}
}
