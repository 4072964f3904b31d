package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// says returns a reader of the segments that a client sends on a connection. It returns the calls in a segment, each
// with its key. A segment without a call has only frames of HTTP/2, and the reader returns their names.
func says() func(segment string) string {
	r := &segmentReader{methods: map[uint32]string{}, bodies: map[uint32][]byte{}}
	r.frames = http2.NewFramer(nil, &r.left)
	r.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil) // the size with which HTTP/2 begins
	return r.read
}

type segmentReader struct {
	left    bytes.Buffer // what was not read yet: frames from the first that is not whole
	begun   bool         // the preface was read
	broken  bool         // something could not be read
	frames  *http2.Framer
	methods map[uint32]string // by stream
	bodies  map[uint32][]byte // by stream, the message that is not whole
}

// A saidCall is the text of a call that a stream makes.
type saidCall struct {
	stream uint32
	text   string
	opens  bool // the stream begins, and its message is not here yet
}

func (r *segmentReader) read(segment string) string {
	if r.broken {
		return ""
	}
	r.left.WriteString(segment)
	if !r.begun && r.left.Len() >= len(http2.ClientPreface) {
		r.begun, r.broken = true, string(r.left.Next(len(http2.ClientPreface))) != http2.ClientPreface
	}
	var calls []saidCall
	var others []string
	for r.begun && !r.broken && r.whole() {
		frame, err := r.frames.ReadFrame()
		if err != nil {
			r.broken = true
			return ""
		}
		stream := frame.Header().StreamID
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			r.methods[stream] = MethodName(f.PseudoValue("path"))
			calls = append(calls, saidCall{stream, r.methods[stream], true})
		case *http2.DataFrame:
			for _, message := range r.messages(stream, f.Data()) {
				if i := slices.IndexFunc(calls, func(c saidCall) bool { return c.stream == stream && c.opens }); i >= 0 {
					calls = slices.Delete(calls, i, i+1)
				}
				calls = append(calls, saidCall{stream: stream, text: strings.TrimSpace(r.methods[stream] + " " + about(r.methods[stream], message))})
			}
		case *http2.RSTStreamFrame:
			calls = append(calls, saidCall{stream: stream, text: "gives up " + r.methods[stream]})
		default:
			others = append(others, frame.Header().Type.String())
		}
	}
	var texts []string
	for _, c := range calls {
		texts = append(texts, c.text)
	}
	if len(texts) == 0 {
		slices.Sort(others)
		texts = slices.Compact(others)
	}
	return strings.Join(texts, "; ")
}

// MethodName returns the path of a method of gRPC without its package, such as KV/Txn.
func MethodName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// whole reports whether the first frame that was not read is whole.
func (r *segmentReader) whole() bool {
	const head = 9
	b := r.left.Bytes()
	return len(b) >= head && len(b) >= head+(int(b[0])<<16|int(b[1])<<8|int(b[2]))
}

// messages returns the messages of gRPC that these bytes of a stream complete.
func (r *segmentReader) messages(stream uint32, data []byte) (all [][]byte) {
	const head = 5 // whether it is compressed, and its size
	body := slices.Concat(r.bodies[stream], data)
	for len(body) >= head && uint64(len(body)) >= head+uint64(binary.BigEndian.Uint32(body[1:])) {
		end := head + int(binary.BigEndian.Uint32(body[1:]))
		all, body = append(all, body[head:end]), body[end:]
	}
	r.bodies[stream] = body
	return all
}

// about returns what a message of this method is about; "" if nobody can read it.
func about(method string, message []byte) string {
	text := ""
	read := func(m proto.Message, about func() string) {
		if proto.Unmarshal(message, m) == nil {
			text = about()
		}
	}
	switch method {
	case "KV/Range":
		m := &etcdserverpb.RangeRequest{}
		read(m, func() string { return keys(m.Key, m.RangeEnd) })
	case "KV/Put":
		m := &etcdserverpb.PutRequest{}
		read(m, func() string { return string(m.Key) })
	case "KV/DeleteRange":
		m := &etcdserverpb.DeleteRangeRequest{}
		read(m, func() string { return keys(m.Key, m.RangeEnd) })
	case "KV/Txn":
		m := &etcdserverpb.TxnRequest{}
		read(m, func() string { return aboutTxn(m) })
	case "Lease/LeaseGrant":
		m := &etcdserverpb.LeaseGrantRequest{}
		read(m, func() string { return fmt.Sprintf("%ds", m.TTL) })
	case "Lease/LeaseRevoke":
		m := &etcdserverpb.LeaseRevokeRequest{}
		read(m, func() string { return fmt.Sprintf("%x", m.ID) })
	case "Lease/LeaseKeepAlive":
		m := &etcdserverpb.LeaseKeepAliveRequest{}
		read(m, func() string { return fmt.Sprintf("%x", m.ID) })
	case "Lease/LeaseTimeToLive":
		m := &etcdserverpb.LeaseTimeToLiveRequest{}
		read(m, func() string { return fmt.Sprintf("%x", m.ID) })
	case "Lock/Lock":
		m := &v3lockpb.LockRequest{}
		read(m, func() string { return string(m.Name) })
	case "Lock/Unlock":
		m := &v3lockpb.UnlockRequest{}
		read(m, func() string { return string(m.Key) })
	case "Watch/Watch":
		m := &etcdserverpb.WatchRequest{}
		read(m, func() string {
			if c := m.GetCreateRequest(); c != nil {
				return keys(c.Key, c.RangeEnd)
			}
			return ""
		})
	}
	return text
}

// aboutTxn returns what a transaction writes if its conditions are met, or what it reads if it writes nothing.
func aboutTxn(m *etcdserverpb.TxnRequest) string {
	var writes, reads []string
	written := ""
	for _, op := range m.Success {
		switch r := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestPut:
			written = string(r.RequestPut.Key)
			writes = append(writes, "put "+written)
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			written = keys(r.RequestDeleteRange.Key, r.RequestDeleteRange.RangeEnd)
			writes = append(writes, "delete "+written)
		case *etcdserverpb.RequestOp_RequestRange:
			reads = append(reads, "get "+keys(r.RequestRange.Key, r.RequestRange.RangeEnd))
		}
	}
	if len(writes) == 0 {
		writes = reads
	}
	text := strings.Join(writes, ", ")
	for i, c := range m.Compare {
		text += map[bool]string{true: " if ", false: " and "}[i == 0]
		if key := keys(c.Key, c.RangeEnd); key != written || len(writes) > 1 {
			text += key + " "
		}
		text += condition(c)
	}
	return text
}

// condition returns a condition without its key.
func condition(c *etcdserverpb.Compare) string {
	sign := map[etcdserverpb.Compare_CompareResult]string{etcdserverpb.Compare_EQUAL: "=", etcdserverpb.Compare_GREATER: ">", etcdserverpb.Compare_LESS: "<", etcdserverpb.Compare_NOT_EQUAL: "≠"}[c.Result]
	switch c.Target {
	case etcdserverpb.Compare_CREATE:
		if c.GetCreateRevision() == 0 && c.Result == etcdserverpb.Compare_EQUAL {
			return "absent"
		}
		return fmt.Sprintf("created %s %d", sign, c.GetCreateRevision())
	case etcdserverpb.Compare_VERSION:
		if c.GetVersion() == 0 && c.Result == etcdserverpb.Compare_EQUAL {
			return "absent"
		}
		return fmt.Sprintf("version %s %d", sign, c.GetVersion())
	case etcdserverpb.Compare_MOD:
		return fmt.Sprintf("modified %s %d", sign, c.GetModRevision())
	case etcdserverpb.Compare_LEASE:
		return fmt.Sprintf("lease %s %x", sign, c.GetLease())
	}
	return fmt.Sprintf("value %s %s", sign, c.GetValue())
}

// keys returns a key, or a range of keys.
func keys(key, end []byte) string {
	switch {
	case len(end) == 0:
		return string(key)
	case string(end) == clientv3.GetPrefixRangeEnd(string(key)):
		return string(key) + "*"
	}
	return fmt.Sprintf("%s..%s", key, end)
}
