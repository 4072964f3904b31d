module lockreport

go 1.25

require github.com/go-zookeeper/zk v1.0.4
