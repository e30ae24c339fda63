"""The REST API's mount: both apps' routers, errors as problem JSON, the OpenAPI document."""
