// A program of its own, so that nothing else here needs Go. It uses the standard library only.
module reader

go 1.23.3
