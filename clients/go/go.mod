module heliograph/clients/go

go 1.23
