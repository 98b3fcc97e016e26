from django.urls import path
from inbox.views import receive

urlpatterns = [path("webhooks", receive)]
